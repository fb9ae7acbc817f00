"""Requests of POST /v1/sizing/capacity, and the answer to the first."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from service.example_bodies import configs

_LLAMA_3_8B = {
    "d_model": 4096,
    "n_layers": 32,
    "attention": {"n_heads": 32, "n_kv_heads": 8},
    "ffn": {"kind": "gated", "activation": "silu", "d_ff": 14336, "bias": False},
    "norm": {"kind": "rmsnorm"},
    "position": {"kind": "rope", "theta": 500000},
    "vocab": 128256,
}
_GIB_24 = {"value": 24, "unit": "GiB"}
_CONTEXT = {
    "model": {"config": _LLAMA_3_8B},
    "ask": "context",
    "budget": _GIB_24,
    "dtype": "bfloat16",
}
_BATCH = {
    "model": {"config": _LLAMA_3_8B},
    "ask": "batch",
    "device": {"name": "a100-80gb-sxm"},
    "utilisation": 0.9,
    "tokens": 8192,
    "cache": {"dtype": "float8", "page": 16},
}
_FITS = {
    "model": {"preset": "gpt2"},
    "ask": "fits",
    "budget": {"value": 1, "unit": "GiB"},
    "tokens": 1024,
    "batch": 4,
    "include": ["weights", "kv_cache", "activations"],
    "activations": {"kernel": "flash"},
}
_ENCODER = {
    "model": {"preset": "bert-base"},
    "ask": "batch",
    "budget": {"value": 8, "unit": "GB"},
    "tokens": 512,
    "overhead": {"value": 0.5, "unit": "GB"},
}

REQUESTS: Mapping[str, Any] = MappingProxyType(
    {
        "context": {"summary": "The longest context in 24 GiB", "value": _CONTEXT},
        "batch": {"summary": "The most sequences on a device", "value": _BATCH},
        "fits": {"summary": "Whether something fits", "value": _FITS},
        "encoder": {"summary": "A model that caches nothing", "value": _ENCODER},
    }
)


def _amount(count: int) -> Mapping[str, Any]:
    """So many bytes, as answered."""
    exact = {"value": count, "exact": str(count), "unit": "bytes", "kind": "exact"}
    return {**exact, "GiB": count / (1 << 30), "GB": count / 10**9}


ANSWER: Mapping[str, Any] = MappingProxyType(
    {
        "model": {
            "name": None,
            "preset": None,
            "overrides": [],
            "config": configs.answered(_LLAMA_3_8B),
        },
        "ask": "context",
        "answer": {"value": 74075, "exact": "74075", "unit": "tokens"},
        "fits": True,
        "batch": 1,
        "tokens": 74075,
        "memory": {
            "device": None,
            "total": _amount(25769803776),
            "utilisation": 1.0,
            "usable": _amount(25769803776),
        },
        "total": _amount(25769680896),
        "parts": [
            {
                "id": "weights",
                "bytes": _amount(16060522496),
                "share": 0.6232332701680032,
                "growth": _amount(0),
            },
            {
                "id": "overhead",
                "bytes": _amount(0),
                "share": 0.0,
                "growth": _amount(0),
            },
            {
                "id": "kv_cache",
                "bytes": _amount(9709158400),
                "share": 0.37676672983199677,
                "growth": _amount(131072),
            },
        ],
        "left": _amount(122880),
        "following": {
            "value": 74076,
            "total": _amount(25769811968),
            "missing": _amount(8192),
        },
        "binding": {
            "limit": "memory",
            "part": "kv_cache",
            "detail": "One more does not fit; kv_cache grows most.",
        },
        "kind": "exact",
        "include": ["weights", "kv_cache"],
        "windows": "allocation",
        "notes": [
            "The answer is the largest whole number whose parts, each by its exact "
            "formula, are within what is usable; one more is looked at too.",
            "Positions are as memory allows: how many a model was trained on its config does "
            "not say, but for a learned table.",
            "budget · utilisation and fractions of a unit are rounded down to whole bytes.",
            "The cache is of all positions; activations are the peak of one pass over all "
            "of them at once.",
            "Each tensor takes ceil(numbers · bits / 8) bytes; only there anything is rounded.",
        ],
        "excluded": [
            "What is not in include; buffers of an engine, its pages that are free, "
            "fragments, the driver: say them as overhead or utilisation.",
            "Gradients and what an optimizer remembers.",
        ],
    }
)
"""What the example `context` is answered."""
