"""Requests of POST /v1/equivariance, and the answer to the first."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from service import examples

_CAUSAL = {
    "model": {"name": "eiffel-toy", "config": {"attention": {"mask": "causal"}}},
    "input": {"text": "the Eiffel tower"},
    "permutation": [2, 0, 1],
    "select": ["attn.pattern"],
}
_TOY = {"model": {"name": "eiffel-toy"}, "input": {"text": "the Eiffel tower"}}
_LETTERS = {"model": {"name": "letter-sort"}, "input": {"text": "CABBAC"}}
_WRITTEN_OUT = {
    "model": {
        "config": {
            "d_model": 8,
            "n_layers": 2,
            "attention": {"n_heads": 2, "mask": "full"},
            "position": {"kind": "alibi"},
        },
        "weights": {"init": "seeded", "seed": 1},
    },
    "input": {
        "tensor": [
            [1, 0, 0, 0, 1, 0, 0, 0],
            [0, 1, 0, 0, 0, 1, 0, 0],
            [0, 0, 1, 0, 0, 0, 1, 0],
            [0, 0, 0, 1, 0, 0, 0, 1],
        ]
    },
    "select": ["S", "A", "Z"],
    "dtype": "float32",
}

REQUESTS: Mapping[str, Any] = MappingProxyType(
    {
        "causal": {"summary": "A causal mask sees the order of rows", "value": _CAUSAL},
        "toy": {"summary": "The article's toy has neither positions nor a mask", "value": _TOY},
        "letters": {"summary": "A trained model with both", "value": _LETTERS},
        "written_out": {"summary": "ALiBi alone, some stages", "value": _WRITTEN_OUT},
    }
)

_TOY_MODEL, _TOY_INPUT = examples.ANSWER["model"], examples.ANSWER["input"]
_CAUSAL_MODEL = {
    **_TOY_MODEL,
    "digest": "sha256:604af0008d4d7ae1e8f5dfa456be704bd76c94856e27760091364b1f9c9fffc9",
    "config": {
        **_TOY_MODEL["config"],
        "attention": {**_TOY_MODEL["config"]["attention"], "mask": "causal"},
    },
    "overrides": ["attention.mask"],
}

ANSWER: Mapping[str, Any] = MappingProxyType(
    {
        "model": _CAUSAL_MODEL,
        "input": _TOY_INPUT,
        "permutation": [2, 0, 1],
        "dtype": "float64",
        "tolerance": 1e-12,
        "has": {"positions": "none", "mask": True},
        "cases": [
            {
                "case": "as_it_is",
                "positions": True,
                "mask": True,
                "same_as": None,
                "permutes": False,
                "first": {"stage": "blocks.0.attn.pattern", "positions": [0, 1, 2]},
                "stages": [
                    {
                        "name": "blocks.0.attn.pattern",
                        "axes": ["head", "position", "key_position"],
                        "max_abs": 0.7517449217422769,
                        "rel": 0.7517449217422769,
                        "permutes": False,
                        "worst_position": 0,
                        "by_position": [0.7517449217422769, 0.5, 0.5034898434845538],
                    }
                ],
            },
            {
                "case": "without_positions",
                "positions": False,
                "mask": True,
                "same_as": "as_it_is",
                "permutes": False,
                "first": {"stage": "blocks.0.attn.pattern", "positions": [0, 1, 2]},
                "stages": [
                    {
                        "name": "blocks.0.attn.pattern",
                        "axes": ["head", "position", "key_position"],
                        "max_abs": 0.7517449217422769,
                        "rel": 0.7517449217422769,
                        "permutes": False,
                        "worst_position": 0,
                        "by_position": [0.7517449217422769, 0.5, 0.5034898434845538],
                    }
                ],
            },
            {
                "case": "without_mask",
                "positions": True,
                "mask": False,
                "same_as": None,
                "permutes": True,
                "first": None,
                "stages": [
                    {
                        "name": "blocks.0.attn.pattern",
                        "axes": ["head", "position", "key_position"],
                        "max_abs": 0.0,
                        "rel": 0.0,
                        "permutes": True,
                        "worst_position": None,
                        "by_position": [0.0, 0.0, 0.0],
                    }
                ],
            },
            {
                "case": "without_both",
                "positions": False,
                "mask": False,
                "same_as": "without_mask",
                "permutes": True,
                "first": None,
                "stages": [
                    {
                        "name": "blocks.0.attn.pattern",
                        "axes": ["head", "position", "key_position"],
                        "max_abs": 0.0,
                        "rel": 0.0,
                        "permutes": True,
                        "worst_position": None,
                        "by_position": [0.0, 0.0, 0.0],
                    }
                ],
            },
        ],
    }
)
"""What the example `causal` is answered."""
