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
    "select": ["A", {"name": "attn.head_out", "summary": True}, "logits"],
}

_POST_NORM = {
    "model": {"name": "letter-sort", "config": {"norm": {"placement": "post"}}},
    "input": {"text": "CABBAC"},
    "select": ["attn_sum", "ffn_sum", "logits"],
}

_SANDWICH = {
    "model": {"name": "induction", "config": {"norm": {"placement": "sandwich"}}},
    "input": {"text": "GLASSGLA"},
    "select": ["attn.out_raw", "norm1_post.out", "attn_out", {"name": "Z", "summary": True}],
}

_EXPERTS = {
    "model": {
        "config": {
            "d_model": 8,
            "attention": {"n_heads": 2, "qk_norm": "head", "sinks": True},
            "ffn": {"kind": "moe", "n_experts": 4, "top_k": 2, "d_ff": 6, "d_shared": 3},
            "norm": {"kind": "rmsnorm"},
            "position": {
                "kind": "rope",
                "scaling": {"kind": "yarn", "factor": 4, "original_positions": 16},
            },
            "vocab": 12,
            "n_layers": 2,
            "layers": [{"window": 2}, {"theta": None}],
        }
    },
    "input": {"token_ids": [3, 1, 4, 1, 5]},
    "select": ["A", "attn.sink", "ffn.router", "ffn.experts", "ffn.expert_weights", "logits"],
}

_TRANSLATION = {
    "model": {
        "config": {
            "d_model": 8,
            "attention": {"n_heads": 2},
            "norm": {"placement": "post"},
            "position": {"kind": "sinusoidal"},
            "vocab": 12,
            "tied": True,
            "encoder": {
                "attention": {"n_heads": 2},
                "norm": {"placement": "post"},
                "position": {"kind": "sinusoidal"},
            },
        }
    },
    "input": {"token_ids": [1, 7, 2], "memory": {"token_ids": [4, 9, 9, 5]}},
    "select": ["encoder.blocks.0.attn.pattern", "cross.pattern", "cross_out", "logits"],
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
            "digest": "sha256:a336bf71ea35a4f9c9a5baab0bd30c8c6ac8c0d829014834bbc3ad9dcaf4f81f",
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
                    "softcap": None,
                    "qk_norm": "none",
                    "sinks": False,
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
                "topology": "sequential",
                "residual_multiplier": 1.0,
                "cross_attention": False,
                "embed_multiplier": 1.0,
                "embed_norm": False,
                "token_types": 0,
                "readout": True,
                "mlm_head": False,
                "logit_multiplier": 1.0,
                "logit_softcap": None,
                "layers": [],
                "encoder": None,
            },
            "weights": {
                "init": None,
                "seed": None,
                "given": [],
                "edited": [],
                "filled": [],
                "unused": [],
            },
            "overrides": [],
        },
        "input": {
            "positions": 3,
            "batch": None,
            "tokens": ["the", "Eiffel", "tower"],
            "token_ids": [0, 1, 2],
            "position_ids": [0, 1, 2],
            "key_mask": None,
            "token_types": None,
            "memory": None,
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
        "cost": {"parameters": 22, "flops": 168, "elements": 9, "bytes": 544},
    }
)
"""What the example `row` is answered."""

_HEAD_OFF = {
    "model": {"name": "induction"},
    "input": {"text": "QWERTYQWERT"},
    "select": ["logits"],
    "interventions": [{"stage": "attn.z", "op": "zero", "where": {"block": [1], "head": [2]}}],
    "measures": [{"logit": "Y", "minus": "U"}],
}

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
        "post-norm": {
            "summary": "The same weights, with the norms after the additions",
            "value": _POST_NORM,
        },
        "sandwich": {
            "summary": "The same weights, with norms around the sublayers; the new ones are told",
            "value": _SANDWICH,
        },
        "experts": {
            "summary": "A router and its experts, sinks, blocks with a window or without rotation",
            "value": _EXPERTS,
        },
        "translation": {
            "summary": "An encoder and a decoder: cross-attention to the memory",
            "value": _TRANSLATION,
        },
        "head-off": {
            "summary": "A head set to zero: before, after, the effect on a logit",
            "value": _HEAD_OFF,
        },
        "sources": {
            "summary": "What each source position gave one receiving position",
            "value": _SOURCES,
        },
    }
)
