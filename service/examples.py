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

_SOURCES = {
    "model": {"name": "letter-sort"},
    "input": {"token_ids": [2, 0, 1, 1, 0, 2, 0]},
    "select": [
        {"name": "blocks.0.attn.source_out", "position": [-1], "head": [1]},
        {"name": "blocks.0.attn.dots", "head": [1]},
    ],
}

TRACE: Mapping[str, dict[str, Any]] = MappingProxyType(
    {
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
        "sources": {
            "summary": "What each source position gave one receiving position",
            "value": _SOURCES,
        },
    }
)
