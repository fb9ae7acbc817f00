"""Requests of POST /v1/sizing/compare, and the answer to the first."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from service.example_bodies import configs
from service.example_bodies.inverse import counted

_DISTILLED = {
    "models": [
        {"label": "gpt2", "model": {"preset": "gpt2"}},
        {"label": "distilgpt2", "model": {"preset": "distilgpt2"}},
    ],
    "ask": ["parameters"],
}
_GROUPED = {
    "models": [
        {"label": "grouped", "model": {"preset": "smollm2-135m"}},
        {
            "label": "every-head",
            "model": {"preset": "smollm2-135m", "config": {"attention": {"n_kv_heads": 9}}},
        },
    ],
    "ask": ["parameters", "kv_cache", "flops", "weights"],
    "tokens": 2048,
    "batch": 4,
    "dtype": "bfloat16",
}
_THREE = {
    "models": [
        {"label": "gpt2", "model": {"preset": "gpt2"}},
        {"label": "bert", "model": {"preset": "bert-base"}},
        {"label": "smollm2", "model": {"preset": "smollm2-135m"}},
    ]
}

REQUESTS: Mapping[str, Any] = MappingProxyType(
    {
        "distilled": {"summary": "Half the blocks", "value": _DISTILLED},
        "grouped": {"summary": "What grouped heads save, and what not", "value": _GROUPED},
        "three": {"summary": "Three families, all that they share", "value": _THREE},
    }
)


_TABLES = {"embed.W_E": 38597376, "pos_embed.W_pos": 786432}
_FINAL = {"final_norm.weight": 768, "final_norm.bias": 768}
_BLOCK = {
    "blocks.norm1.weight": 768,
    "blocks.norm1.bias": 768,
    "blocks.attn.W_Q": 589824,
    "blocks.attn.W_K": 589824,
    "blocks.attn.W_V": 589824,
    "blocks.attn.W_O": 589824,
    "blocks.attn.b_Q": 768,
    "blocks.attn.b_K": 768,
    "blocks.attn.b_V": 768,
    "blocks.attn.b_O": 768,
    "blocks.norm2.weight": 768,
    "blocks.norm2.bias": 768,
    "blocks.ffn.W_in": 2359296,
    "blocks.ffn.W_out": 2359296,
    "blocks.ffn.b_in": 3072,
    "blocks.ffn.b_out": 768,
}
"""Part -> numbers; of a block, of one block."""


def _line(part: str, before: int, after: int) -> dict[str, Any]:
    change = after - before
    made = {"id": part, "from": before, "to": after, "difference": change}
    return {**made, "exact": str(change), "ratio": after / before}


def _total(label: str, value: int, blocks: int) -> dict[str, Any]:
    return {
        "label": label,
        "total": counted(value),
        "difference": counted(value - 124439808),
        "ratio": value / 124439808,
        "parts": [
            *(_line(part, size, size) for part, size in _TABLES.items()),
            *(_line(part, 12 * size, blocks * size) for part, size in _BLOCK.items()),
            *(_line(part, size, size) for part, size in _FINAL.items()),
        ],
    }


def _model(label: str, n_layers: int) -> dict[str, Any]:
    named: dict[str, Any] = {"name": None, "preset": label, "overrides": []}
    return {
        "label": label,
        "model": {**named, "config": configs.gpt2(768, n_layers, 1024)},
        "tokens": 1024,
    }


_CAUSE = (
    "n_layers 12 → 6: -42527232 parameters in blocks.norm1.weight, blocks.norm1.bias, "
    "blocks.attn.W_Q and 13 more parts."
)
_N_LAYERS = {
    "field": "n_layers",
    "from": 12,
    "to": 6,
    "cause": _CAUSE,
    "moves": [{"of": "parameters", "difference": counted(-42527232), "parts": list(_BLOCK)}],
}

ANSWER: Mapping[str, Any] = MappingProxyType(
    {
        "models": [_model("gpt2", 12), _model("distilgpt2", 6)],
        "parameters": [_total("gpt2", 124439808, 12), _total("distilgpt2", 81912576, 6)],
        "flops": None,
        "kv_cache": None,
        "weights": None,
        "changes": [{"label": "distilgpt2", "fields": [_N_LAYERS]}],
        "absent": {},
    }
)
"""What the example `distilled` is answered."""
