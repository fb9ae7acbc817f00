"""Requests of POST /v1/sizing/inverse, and the answer to the first."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from service.example_bodies import configs

_GPT2 = {
    "target": {"parameters": 1300000000},
    "style": {"preset": "gpt2", "config": {"position": {"n_positions": 2048}}},
    "d_model": {"multiple_of": 128},
    "aspect": {"least": 48, "most": 128},
    "best": 1,
}
_LLAMA = {
    "target": {"parameters": 7000000000},
    "style": {"preset": "llama-2-7b"},
    "aspect": {"least": 64, "most": 128},
    "d_head": 128,
    "d_ff": {"ratio": "8/3", "round_to": 256},
    "best": 5,
}
_CACHE = {
    "target": {"kv_bytes_per_token": 131072, "dtype": "bfloat16"},
    "style": {"preset": "llama-2-7b"},
    "d_head": 128,
    "kv_ratio": 4,
    "best": 3,
}
_FLOPS = {"target": {"flops_per_token": 2000000000}, "style": {"preset": "gpt2"}}
_WEIGHTS = {
    "target": {"weight_bytes": 4000000000, "dtype": "q4_k"},
    "style": {"preset": "smollm2-135m"},
    "best": 2,
}
_NONE = {
    "target": {"parameters": 1000000},
    "style": {"preset": "gpt2"},
    "d_model": {"multiple_of": 64, "least": 65, "most": 127},
}

REQUESTS: Mapping[str, Any] = MappingProxyType(
    {
        "gpt2": {"summary": "1.3 billion numbers in GPT-2's style", "value": _GPT2},
        "llama": {"summary": "7 billion in Llama's, heads of 128", "value": _LLAMA},
        "cache": {"summary": "128 KiB of cache for a token", "value": _CACHE},
        "flops": {"summary": "2 GFLOP for a token", "value": _FLOPS},
        "weights": {"summary": "4 GB of weights in 4.5 bits", "value": _WEIGHTS},
        "none": {"summary": "A grid that holds nothing", "value": _NONE},
    }
)


def counted(value: int) -> dict[str, Any]:
    """So many parameters, as answered."""
    return {"value": value, "exact": str(value), "unit": "parameters", "kind": "exact"}


def _end(d_model: int, n_layers: int, value: int) -> dict[str, Any]:
    return {"d_model": d_model, "n_layers": n_layers, "value": counted(value)}


def _hit(d_model: int, n_layers: int, value: int, relative_error: float) -> dict[str, Any]:
    return {
        **_end(d_model, n_layers, value),
        "error": counted(value - 1300000000),
        "relative_error": relative_error,
        "parameters": counted(value),
        "config": configs.gpt2(d_model, n_layers, 2048),
    }


_BELOW = _hit(1920, 27, 1295496960, -0.003463876923076923)

ANSWER: Mapping[str, Any] = MappingProxyType(
    {
        "style": {
            "name": None,
            "preset": "gpt2",
            "overrides": ["position.n_positions"],
            "config": configs.gpt2(768, 12, 2048),
        },
        "target": {"measured": "parameters", "value": counted(1300000000), "dtype": None},
        "best": [_BELOW],
        "nearest_below": _BELOW,
        "nearest_above": _hit(2176, 21, 1307628032, 0.005867716923076923),
        "unique": False,
        "grid": {
            "multiple_of": 128,
            "widths": 7,
            "candidates": 12,
            "smallest": _end(128, 1, 6893568),
            "largest": _end(262144, 5461, 4503357071818752),
            "width_below": None,
            "width_above": None,
        },
        "reason": None,
    }
)
"""What the example `gpt2` is answered."""
