"""Requests of POST /v1/sizing, and the answer to the first."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from service.example_bodies import configs

_WRITTEN = {
    "d_model": 8,
    "attention": {"n_heads": 2},
    "ffn": {"bias": False},
    "norm": {"kind": "none"},
}
_ARTICLE = {
    "model": {"config": _WRITTEN},
    "ask": ["parameters"],
}
_GPT2 = {
    "model": {"preset": "gpt2"},
    "ask": ["parameters", "flops", "kv_cache"],
    "tokens": 1024,
    "batch": 1,
    "dtype": "float16",
}
_SERVED = {
    "model": {"preset": "llama-3.1-8b"},
    "tokens": 2048,
    "batch": 8,
    "new_tokens": 256,
    "dtype": "bfloat16",
    "cache": {"dtype": "q8_0", "page": 16},
    "device": {"name": "h100-sxm"},
    "conventions": {"head": "last"},
}
_TRAINED = {
    "model": {"preset": "gpt2", "config": {"n_layers": 24, "vocab_padded_to": 50304}},
    "ask": ["flops", "activations", "training"],
    "train_tokens": 300000000000,
    "side_by_side": True,
    "activations": {"dropout": True, "kernel": "flash", "recompute": "selective"},
    "training": {"optimizer": "mixed_adam", "data_parallel": 8},
}
_TRACED = {
    "model": {"name": "induction"},
    "ask": ["trace", "crossovers", "sensitivity"],
    "tokens": 24,
    "trace": {"select": ["blocks.*.attn.pattern"], "dtype": "float64"},
}

REQUESTS: Mapping[str, Any] = MappingProxyType(
    {
        "article": {"summary": "The article's block: 12 d²", "value": _ARTICLE},
        "gpt2": {"summary": "GPT-2 small: numbers, operations, cache", "value": _GPT2},
        "served": {"summary": "Everything of a served Llama, on a device", "value": _SERVED},
        "trained": {"summary": "Training, under every convention", "value": _TRAINED},
        "traced": {
            "summary": "A trace of a named model, and what its fields move",
            "value": _TRACED,
        },
    }
)
"""Examples that run as they stand."""

ANSWER: Mapping[str, Any] = MappingProxyType(
    {
        "model": {
            "name": None,
            "preset": None,
            "overrides": [],
            "config": configs.answered(_WRITTEN),
        },
        "symbols": [
            {"letter": "L", "meaning": "n_layers", "value": 1},
            {"letter": "d", "meaning": "d_model", "value": 8},
            {"letter": "h", "meaning": "attention.n_heads", "value": 2},
            {"letter": "g", "meaning": "attention.n_kv_heads", "value": 2},
            {"letter": "k", "meaning": "attention.d_head", "value": 4},
            {"letter": "v", "meaning": "attention.d_value", "value": 4},
            {"letter": "f", "meaning": "ffn.d_ff", "value": 32},
            {"letter": "d_embed", "meaning": "d_embed", "value": 8},
            {"letter": "B", "meaning": "batch", "value": 1},
            {"letter": "n", "meaning": "tokens", "value": 1024},
            {"letter": "past", "meaning": "cached", "value": 0},
            {"letter": "s", "meaning": "source_tokens", "value": 0},
        ],
        "workload": {
            "batch": 1,
            "tokens": 1024,
            "cached": 0,
            "source_tokens": 0,
            "new_tokens": 0,
            "dtype": "float16",
        },
        "parameters": {
            "total": {"value": 768, "exact": "768", "unit": "parameters", "kind": "exact"},
            "parts": [
                {
                    "id": "blocks.attn.W_Q",
                    "count": 1,
                    "each": 64,
                    "value": 64,
                    "exact": "64",
                    "share": 0.08333333333333333,
                    "formula": "h·d·k",
                    "substituted": "2 · 8 · 4",
                    "in": ["non_embedding", "blocks", "matmul"],
                },
                {
                    "id": "blocks.attn.W_K",
                    "count": 1,
                    "each": 64,
                    "value": 64,
                    "exact": "64",
                    "share": 0.08333333333333333,
                    "formula": "g·d·k",
                    "substituted": "2 · 8 · 4",
                    "in": ["non_embedding", "blocks", "matmul"],
                },
                {
                    "id": "blocks.attn.W_V",
                    "count": 1,
                    "each": 64,
                    "value": 64,
                    "exact": "64",
                    "share": 0.08333333333333333,
                    "formula": "g·d·v",
                    "substituted": "2 · 8 · 4",
                    "in": ["non_embedding", "blocks", "matmul"],
                },
                {
                    "id": "blocks.attn.W_O",
                    "count": 1,
                    "each": 64,
                    "value": 64,
                    "exact": "64",
                    "share": 0.08333333333333333,
                    "formula": "h·v·d",
                    "substituted": "2 · 4 · 8",
                    "in": ["non_embedding", "blocks", "matmul"],
                },
                {
                    "id": "blocks.ffn.W_in",
                    "count": 1,
                    "each": 256,
                    "value": 256,
                    "exact": "256",
                    "share": 0.3333333333333333,
                    "formula": "d·f",
                    "substituted": "8 · 32",
                    "in": ["non_embedding", "blocks", "matmul"],
                },
                {
                    "id": "blocks.ffn.W_out",
                    "count": 1,
                    "each": 256,
                    "value": 256,
                    "exact": "256",
                    "share": 0.3333333333333333,
                    "formula": "f·d",
                    "substituted": "32 · 8",
                    "in": ["non_embedding", "blocks", "matmul"],
                },
            ],
            "per_block": [{"id": "blocks", "count": 1, "parameters": 768}],
            "views": {
                "all": {
                    "total": {"value": 768, "exact": "768", "unit": "parameters", "kind": "exact"},
                    "meaning": "Every number of the model once.",
                },
                "non_embedding": {
                    "total": {"value": 768, "exact": "768", "unit": "parameters", "kind": "exact"},
                    "meaning": "All but the tables of tokens and "
                    "positions and the readout's matrix.",
                },
                "blocks": {
                    "total": {"value": 768, "exact": "768", "unit": "parameters", "kind": "exact"},
                    "meaning": "What the blocks hold.",
                },
                "matmul": {
                    "total": {"value": 768, "exact": "768", "unit": "parameters", "kind": "exact"},
                    "meaning": "What a position is multiplied with, all "
                    "experts, a shared table as readout.",
                },
                "active": {
                    "total": {"value": 768, "exact": "768", "unit": "parameters", "kind": "exact"},
                    "meaning": "What one token meets: of experts the chosen ones.",
                },
                "untied": {
                    "total": {"value": 768, "exact": "768", "unit": "parameters", "kind": "exact"},
                    "meaning": "A shared table counted again as readout.",
                },
            },
            "article": {
                "formula": "L·(3d² + d² + 8d²) = 12·L·d²",
                "substituted": "12 · 1 · 8²",
                "blocks": 1,
                "total": {"value": 768, "exact": "768", "unit": "parameters", "kind": "exact"},
                "parts": [
                    {
                        "id": "blocks.attn.W_QKV",
                        "count": 1,
                        "each": 192,
                        "value": 192,
                        "exact": "192",
                        "share": 0.25,
                        "formula": "3·d²",
                        "substituted": "3 · 8²",
                        "in": [],
                    },
                    {
                        "id": "blocks.attn.W_O",
                        "count": 1,
                        "each": 64,
                        "value": 64,
                        "exact": "64",
                        "share": 0.08333333333333333,
                        "formula": "d²",
                        "substituted": "8²",
                        "in": [],
                    },
                    {
                        "id": "blocks.ffn",
                        "count": 1,
                        "each": 512,
                        "value": 512,
                        "exact": "512",
                        "share": 0.6666666666666666,
                        "formula": "8·d²",
                        "substituted": "8 · 8²",
                        "in": [],
                    },
                ],
                "gap": {"value": 0, "exact": "0", "unit": "parameters", "kind": "exact"},
                "gap_parts": [],
            },
            "excluded": [
                "Buffers: rotary frequencies, masks, position ids. A checkpoint may count them.",
                "A shared table's second copy; see untied.",
                "Scales of quantised weights; see weights.",
            ],
        },
        "flops": None,
        "kv_cache": None,
        "weights": None,
        "activations": None,
        "trace": None,
        "training": None,
        "roofline": None,
        "crossovers": None,
        "sensitivity": None,
        "absent": {},
    }
)
"""What the example `article` is answered."""
