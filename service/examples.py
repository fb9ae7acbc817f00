"""Requests to learn from: shown in the OpenAPI document, run by the tests."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_WRITTEN_OUT = {
    "model": {
        "config": {
            "d_model": 2,
            "n_layers": 1,
            "attention": {"n_heads": 1, "mask": "full", "bias": False},
            "ffn": {"kind": "none"},
            "norm": {"kind": "none"},
            "position": {"kind": "none"},
        },
        "weights": {
            "init": "identity",
            "tensors": {"blocks.0.attn.W_Q": [[[0, 1], [1, 0]]]},
        },
    },
    "input": {"tensor": [[0, 0], [0, 1], [1, 0]]},
}

_NEGATED = {
    "model": {
        "name": "eiffel-toy",
        "weights": {
            "edits": [
                {
                    "tensor": "blocks.0.attn.W_O",
                    "where": {"d_model": [0]},
                    "op": "scale",
                    "value": -1,
                }
            ]
        },
    },
    "input": {"text": "the Eiffel tower"},
    "select": ["H", "Δ_attn", "Z"],
}

_LETTERS = {
    "model": {"name": "letter-sort"},
    "input": {"text": "CABBAC"},
    "select": [
        "blocks.*.attn.pattern",
        {"name": "blocks.2.attn.head_out", "head": [0, 2], "position": [-1]},
        {"name": "blocks.*.resid_post", "summary": True},
        "logits",
    ],
}

_SEEDED = {
    "model": {
        "config": {
            "d_model": 12,
            "n_layers": 2,
            "attention": {"n_heads": 4, "n_kv_heads": 2, "d_head": 4, "bias": {"o": True}},
            "ffn": {"kind": "gated", "activation": "silu", "d_ff": 16, "bias": False},
            "norm": {"kind": "rmsnorm", "eps": 1e-6},
            "position": {"kind": "rope", "theta": 10000, "pairing": "half"},
            "vocab": 10,
            "tied": True,
        },
        "weights": {"init": "seeded", "seed": 7},
    },
    "input": {"token_ids": [[1, 2, 3], [0, 4, 5]], "key_mask": [[True] * 3, [False, True, True]]},
    "select": ["q_rot", "k_rot", "S", "A", "ffn.*", "logits"],
    "dtype": "float64",
}

_PRESET = {
    "model": {
        "preset": "gpt2-tiny",
        "config": {"n_layers": 1, "norm": {"kind": "rmsnorm"}},
        "weights": {"init": "seeded", "seed": 7},
    },
    "input": {"token_ids": [3, 1, 4, 1, 5]},
    "select": ["A", {"name": "head_out", "summary": True}, "logits"],
}

_SOURCES = {
    "model": {"name": "letter-sort"},
    "input": {"token_ids": [2, 0, 1, 1, 0, 2, 0]},
    "select": [
        {"name": "blocks.0.attn.source_out", "position": [-1], "head": [1]},
        {"name": "blocks.0.attn.dots", "head": [1]},
    ],
}

_ROW = {
    "model": {"name": "eiffel-toy"},
    "input": {"text": "the Eiffel tower"},
    "select": [{"name": "A", "position": [2]}, "Z"],
    "identities": False,
}

ANSWER: Mapping[str, Any] = MappingProxyType(
    {
        "model": {
            "name": "eiffel-toy",
            "preset": None,
            "digest": "sha256:28b40f8b68e55ca5fb444465a1322fa05797701e644b8efc8da0c88e3e4bacb8",
            "config": {
                "d_model": 2,
                "n_layers": 1,
                "attention": {
                    "kind": "softmax",
                    "n_heads": 1,
                    "n_kv_heads": 1,
                    "d_head": 2,
                    "d_value": 2,
                    "scale": 0.7071067811865476,
                    "mask": "full",
                    "window": None,
                    "bias": {"q": False, "k": False, "v": False, "o": False},
                },
                "ffn": {"kind": "none"},
                "norm": {"kind": "none"},
                "position": {"kind": "none"},
                "vocab": 3,
                "tied": True,
                "unembed_bias": False,
                "final_norm": False,
            },
            "weights": {"init": None, "seed": None, "given": [], "edited": []},
            "overrides": [],
        },
        "input": {
            "positions": 3,
            "batch": None,
            "tokens": ["the", "Eiffel", "tower"],
            "token_ids": [0, 1, 2],
            "position_ids": [0, 1, 2],
            "key_mask": None,
        },
        "tensors": {
            "blocks.0.attn.pattern": {
                "symbol": "A",
                "axes": ["head", "position", "key_position"],
                "shape": [1, 1, 3],
                "dtype": "float32",
                "index": {"position": [2]},
                "data": [[[0.24825509, 0.50348985, 0.24825509]]],
            },
            "blocks.0.resid_post": {
                "symbol": "Z",
                "axes": ["position", "d_model"],
                "shape": [3, 2],
                "dtype": "float32",
                "data": [
                    [0.33333334, 0.33333334],
                    [0.50348985, 1.2482551],
                    [1.2482551, 0.50348985],
                ],
            },
        },
        "absent": {},
        "fully_masked_rows": [],
        "next_token": None,
        "identities": None,
        "cost": {"parameters": 22, "flops": 168, "elements": 9, "bytes": 472},
    }
)
"""What the example `row` is answered."""

TRACE: Mapping[str, dict[str, Any]] = MappingProxyType(
    {
        "row": {"summary": "One row of a pattern, and where it led", "value": _ROW},
        "article": {"summary": "The article's three tokens, written out", "value": _WRITTEN_OUT},
        "negate-structure": {
            "summary": "The same by name, with W_O's structure coordinate negated",
            "value": _NEGATED,
        },
        "letters": {
            "summary": "Six letters to a trained model: slices, summaries, the next token",
            "value": _LETTERS,
        },
        "seeded": {
            "summary": "A seeded model: rotations, grouped heads, a gated ffn, left padding",
            "value": _SEEDED,
        },
        "preset": {
            "summary": "A known shape with seeded weights, one block of it, another norm",
            "value": _PRESET,
        },
        "sources": {
            "summary": "What each source position gave one receiving position",
            "value": _SOURCES,
        },
    }
)
