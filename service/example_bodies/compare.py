"""Requests of POST /v1/compare, and the answer to the first."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from service import examples

_SORTED = {"model": {"name": "letter-sort"}, "input": {"text": "CABBAC"}}
_TOY = {"model": {"name": "eiffel-toy"}, "input": {"text": "the Eiffel tower"}}

_NEGATED = {
    "a": {**_TOY, "select": ["A", "H", "Δ_attn", "Z"]},
    "b": {
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
        "select": ["A", "H", "Δ_attn", "Z"],
    },
}
_PLACEMENT = {
    "a": _SORTED,
    "b": {**_SORTED, "model": {"name": "letter-sort", "config": {"norm": {"placement": "post"}}}},
}
_INPUTS = {
    "a": {**_SORTED, "select": ["blocks.*.resid_post", "logits"]},
    "b": {
        "model": {"name": "letter-sort"},
        "input": {"text": "CABBAA"},
        "select": ["blocks.*.resid_post", "logits"],
    },
}
_INTERVENTION = {
    "a": _SORTED,
    "b": {
        **_SORTED,
        "interventions": [{"stage": "blocks.1.attn.z", "op": "zero", "where": {"head": [0]}}],
    },
}
_PRECISION = {"a": _SORTED, "b": {**_SORTED, "dtype": "float64"}, "threshold": 1e-4}

REQUESTS: Mapping[str, Any] = MappingProxyType(
    {
        "weights": {"summary": "A coordinate of W_O negated", "value": _NEGATED},
        "placement": {"summary": "Norms before or after the sublayers", "value": _PLACEMENT},
        "inputs": {"summary": "Another last letter", "value": _INPUTS},
        "intervention": {"summary": "A head silenced", "value": _INTERVENTION},
        "precision": {"summary": "float32 beside float64", "value": _PRECISION},
    }
)

_MODEL = examples.ANSWER["model"]


def _stage(name: str, shape: list[int], max_abs: float, rel: float, ratio: float) -> dict[str, Any]:
    return {
        "name": f"blocks.0.{name}",
        "shape": shape,
        "max_abs": max_abs,
        "rel": rel,
        "norm_ratio": ratio,
        "differs": max_abs > 1e-6,
        "nonfinite": 0,
    }


ANSWER: Mapping[str, Any] = MappingProxyType(
    {
        "a": {"model": _MODEL, "input": examples.ANSWER["input"]},
        "b": {
            "model": {
                **_MODEL,
                "digest": "sha256:b68f1f2d3f8fdcd33b935ffde78d29710c71c575a1643679bacd73314e09dfad",
                "weights": {**_MODEL["weights"], "edited": ["blocks.0.attn.W_O"]},
            },
            "input": examples.ANSWER["input"],
        },
        "threshold": 1e-6,
        "stages": [
            _stage("attn.pattern", [1, 3, 3], 0.0, 0.0, 1.0),
            _stage("attn.z", [1, 3, 2], 0.0, 0.0, 1.0),
            _stage("attn_out", [3, 2], 1.0069797039031982, 2.0, 1.0),
            _stage(
                "resid_post", [3, 2], 1.0069797039031982, 0.8067098438247741, 1.1610875795864888
            ),
        ],
        "first_difference": "blocks.0.attn_out",
        "reason": None,
        "only_in": {"a": {}, "b": {}},
        "shapes": [],
    }
)
"""What the example `weights` is answered."""
