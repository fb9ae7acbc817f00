"""A small good request of each call that sizes a model, every key of it there."""

from typing import Any

_MODEL = {"preset": "gpt2-tiny"}
_AMOUNT = {"value": 2, "unit": "GiB"}
_GROUPED = {"group": 32, "scale_bits": 16, "zero_bits": 8}

SIZED: dict[str, Any] = {
    "model": _MODEL,
    "ask": ["parameters", "flops", "kv_cache", "weights", "activations", "trace"],
    "tokens": 12,
    "batch": 2,
    "cached": 3,
    "new_tokens": 4,
    "dtype": "float16",
    "conventions": {"preset": "palm", "multiply_add": 2, "causal": "half", "head": "last"},
    "side_by_side": True,
    "train_tokens": 1000,
    "weights": {"dtype": "int4", "grouped": _GROUPED, "keep": ["norms"], "keep_dtype": "float32"},
    "cache": {"dtype": "int8", "page": 16},
    "activations": {"dtype": "float32", "kernel": "flash", "dropout": True, "recompute": "full"},
    "trace": {"select": ["Z", {"name": "A", "head": [0]}], "dtype": "float64", "input": "tensor"},
}
TIMED: dict[str, Any] = {
    "model": _MODEL,
    "ask": ["roofline", "crossovers", "training", "sensitivity"],
    "device": {
        "flops_per_second": 10**12,
        "bytes_per_second": 10**11,
        "memory": _AMOUNT,
        "flops_efficiency": 0.5,
        "bytes_efficiency": 0.75,
    },
    "training": {
        "bytes_per_parameter": {"weights": 2, "gradients": 2, "master": 4},
        "data_parallel": 2,
    },
}
CAPACITY: dict[str, Any] = {
    "model": _MODEL,
    "ask": "batch",
    "budget": _AMOUNT,
    "utilisation": 0.9,
    "overhead": {"value": 1, "unit": "GB"},
    "tokens": 12,
    "dtype": "bfloat16",
    "include": ["weights", "kv_cache", "activations"],
    "cache": {"dtype": "float8", "page": 16},
}
INVERSE: dict[str, Any] = {
    "target": {"weight_bytes": 10**9, "dtype": "q4_0"},
    "style": _MODEL,
    "d_model": {"multiple_of": 64, "least": 64, "most": 2048},
    "aspect": {"least": 8, "most": 64},
    "d_head": 32,
    "kv_ratio": 2,
    "d_ff": {"ratio": "8/3", "round_to": 64},
    "best": 2,
}
COMPARED: dict[str, Any] = {
    "models": [{"label": "one", "model": _MODEL}, {"label": "two", "model": {"preset": "gpt2"}}],
    "ask": ["parameters", "kv_cache", "flops", "weights"],
    "tokens": 12,
    "batch": 2,
    "dtype": "int8",
}
RECONCILED: dict[str, Any] = {"model": _MODEL, "published": "30K", "unit": "parameters", "best": 3}

ANSWERED: dict[str, tuple[str, dict[str, Any]]] = {
    "sized": ("/v1/sizing", SIZED),
    "timed": ("/v1/sizing", TIMED),
    "capacity": ("/v1/sizing/capacity", CAPACITY),
    "inverse": ("/v1/sizing/inverse", INVERSE),
    "compared": ("/v1/sizing/compare", COMPARED),
    "reconciled": ("/v1/sizing/reconcile", RECONCILED),
}
