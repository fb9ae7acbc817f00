"""Requests of POST /v1/subspaces, and the answer to the first, its lists cut short."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from service import examples

_COMPOSITION = {"model": {"name": "induction"}, "ask": ["composition"]}
_SUBSPACES = {
    "model": {"name": "letter-sort"},
    "ask": ["rank", "singular_values", "effective_rank", "overlap", "angles"],
}
_CIRCUITS = {
    "model": {"name": "induction"},
    "heads": [{"block": 1, "head": 2}],
    "ask": ["qk", "ov", "token_copying"],
    "tokens": ["A", "B", 2],
}
_READS = {
    "model": {"name": "induction"},
    "heads": [{"block": 0, "head": 1}],
    "readers": "all",
    "ask": ["reads", "ffn", "angles"],
    "fold_norm": True,
}
_PLANES = {
    "model": {
        "config": {
            "d_model": 4,
            "n_layers": 1,
            "attention": {"n_heads": 2, "d_head": 2, "bias": False},
            "ffn": {"kind": "none"},
            "norm": {"kind": "none"},
            "position": {"kind": "none"},
        },
        "weights": {
            "init": "identity",
            "tensors": {
                "blocks.0.attn.W_O": [
                    [[1, 0, 0, 0], [0, 1, 0, 0]],
                    [[1, 0, 0, 0], [0, 0, 1, 0]],
                ]
            },
        },
    },
    "ask": ["rank", "basis", "overlap", "angles"],
}

REQUESTS: Mapping[str, Any] = MappingProxyType(
    {
        "composition": {
            "summary": "Which heads of a trained model compose",
            "value": _COMPOSITION,
        },
        "planes": {"summary": "Two heads whose planes share a line", "value": _PLANES},
        "subspaces": {"summary": "Where the heads of a trained model write", "value": _SUBSPACES},
        "circuits": {
            "summary": "The circuits of one head, with rows for three tokens",
            "value": _CIRCUITS,
        },
        "reads": {
            "summary": "What later matrices read of one head, norms folded in",
            "value": _READS,
        },
    }
)

_READERS = [
    {"block": 0, "head": 0, "kv_head": 0},
    {"block": 0, "head": 1, "kv_head": 0},
    {"block": 1, "head": 2, "kv_head": 1},
]


def _kind(score: float, largest: bool = True) -> dict[str, Any]:
    pair = {"writer": {"block": 0, "head": 1}, "reader": {"block": 1, "head": 2}, "score": score}
    return {
        "score": [[None, None, 0.1118], [None, None, score], [None, None, None]],
        "baseline": {"mean": 0.1245, "std": 0.0024},
        "largest": [pair] if largest else [],
    }


ANSWER: Mapping[str, Any] = MappingProxyType(
    {
        "model": examples.ANSWER["model"],
        "fold_norm": False,
        "heads": _READERS,
        "composition": {
            "readers": _READERS,
            "q": _kind(0.04, largest=False),
            "k": _kind(0.2705),
            "v": _kind(0.0547, largest=False),
        },
        "notes": ["A norm stands before each read; fold_norm folds its gain in."],
    }
)
