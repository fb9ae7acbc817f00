"""Requests of POST /v1/decode, and the answer to the first."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from service import examples

_DIGEST = "sha256:604af0008d4d7ae1e8f5dfa456be704bd76c94856e27760091364b1f9c9fffc9"
_TOY = {"name": "eiffel-toy", "config": {"attention": {"mask": "causal"}}}
_CACHE = {
    "digest": _DIGEST,
    "dtype": "float32",
    "position_ids": [0, 1],
    "key_mask": None,
    "blocks.0.attn.k": [[[0.0, 0.0], [0.0, 1.0]]],
    "blocks.0.attn.v": [[[0.0, 0.0], [0.0, 1.0]]],
}
_PREFIX = {"model": _TOY, "input": {"text": "the Eiffel"}, "top": 2, "cache_as": "nested"}
_NEXT = {"model": _TOY, "input": {"text": "tower"}, "cache": _CACHE, "top": 2}
_GREEDY = {
    "model": {"name": "induction"},
    "input": {"text": "GLASSGLA"},
    "steps": 3,
    "select": [{"name": "blocks.1.attn.pattern", "position": [-1]}],
    "top": 1,
    "logits": False,
    "cache_as": "none",
}

DECODE: Mapping[str, Any] = MappingProxyType(
    {
        "prefix": {"summary": "Two tokens, and the cache they leave", "value": _PREFIX},
        "next": {"summary": "The third token, after that cache", "value": _NEXT},
        "greedy": {"summary": "Three more tokens, each the likeliest", "value": _GREEDY},
    }
)

_MODEL: Mapping[str, Any] = examples.ANSWER["model"]
_CONFIG = _MODEL["config"]

ANSWER: Mapping[str, Any] = MappingProxyType(
    {
        "model": {
            **_MODEL,
            "digest": _DIGEST,
            "config": {**_CONFIG, "attention": {**_CONFIG["attention"], "mask": "causal"}},
            "overrides": ["attention.mask"],
        },
        "input": {
            "positions": 2,
            "batch": None,
            "tokens": ["the", "Eiffel"],
            "token_ids": [0, 1],
            "position_ids": [0, 1],
            "key_mask": None,
            "token_types": None,
            "memory": None,
        },
        "steps": [
            {
                "rows": 2,
                "token_id": 1,
                "token": "Eiffel",
                "position": 1,
                "top": [
                    {
                        "token_id": 1,
                        "token": "Eiffel",
                        "logit": 1.5,
                        "probability": 0.6914384540362275,
                    },
                    {
                        "token_id": 0,
                        "token": "the",
                        "logit": 0.0,
                        "probability": 0.15428077298188617,
                    },
                ],
                "logits": [0.0, 1.5, 0.0],
                "tensors": {
                    "blocks.0.attn.pattern": {
                        "symbol": "A",
                        "axes": ["head", "position", "key_position"],
                        "shape": [1, 2, 2],
                        "dtype": "float32",
                        "data": [[[1.0, 0.0], [0.5, 0.5]]],
                    },
                    "blocks.0.attn_out": {
                        "symbol": "Δ_attn",
                        "axes": ["position", "d_model"],
                        "shape": [2, 2],
                        "dtype": "float32",
                        "data": [[0.0, 0.0], [0.0, 0.5]],
                    },
                    "blocks.0.resid_post": {
                        "symbol": "Z",
                        "axes": ["position", "d_model"],
                        "shape": [2, 2],
                        "dtype": "float32",
                        "data": [[0.0, 0.0], [0.0, 1.5]],
                    },
                },
            }
        ],
        "absent": {},
        "exact": True,
        "reason": None,
        "cache": _CACHE,
        "cost": {"parameters": 22, "flops": 120, "elements": 39, "bytes": 528},
    }
)
