"""Requests of POST /v1/jacobian, and the answer to the first."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from service import examples

_TOY = {"model": {"name": "eiffel-toy"}, "input": {"text": "the Eiffel tower"}}
_SORTED = {"model": {"name": "letter-sort"}, "input": {"text": "CABBAC"}}

_ITSELF = {
    **_TOY,
    "of": "blocks.0.resid_post",
    "by": "blocks.0.resid_pre",
    "position": 2,
    "source": 2,
    "ask": ["matrix", "singular_values", "identity_part"],
}
_SOURCE = {**_TOY, "of": "Z", "by": "X", "position": 2, "source": 1, "ask": ["matrix"]}
_STACK = {
    **_SORTED,
    "of": "blocks.2.resid_post",
    "by": "blocks.0.resid_pre",
    "position": -1,
    "source": 0,
    "ask": ["singular_values", "norms"],
    "dtype": "float32",
}
_POST_NORM = {
    "model": {"name": "letter-sort", "config": {"norm": {"placement": "post"}}},
    "input": {"text": "CABBAC"},
    "of": "blocks.0.resid_mid",
    "by": "blocks.0.resid_pre",
    "ask": ["norms", "identity_part", "factors"],
}
_GRADIENTS = {
    **_SORTED,
    "measure": {"logit": "A", "minus": "B"},
    "gradients": ["blocks.*.resid_pre", {"name": "attn.z", "position": [-1]}],
}
_DIRECTION = {
    **_TOY,
    "measure": {"stage": "blocks.0.resid_post", "direction": [1, 0], "position": 2},
    "gradients": ["A", "H"],
}

REQUESTS: Mapping[str, Any] = MappingProxyType(
    {
        "itself": {"summary": "I + dF/dx of one block at one position", "value": _ITSELF},
        "source": {"summary": "By another position: no I", "value": _SOURCE},
        "stack": {"summary": "Through a stack, by sizes alone", "value": _STACK},
        "post-norm": {"summary": "Post-norm's factors", "value": _POST_NORM},
        "gradients": {"summary": "A logit less another, by stages", "value": _GRADIENTS},
        "direction": {"summary": "A coordinate of the stream, by stages", "value": _DIRECTION},
    }
)


def _map(matrix: list[list[float]], singular_values: list[float]) -> dict[str, Any]:
    return {"matrix": matrix, "singular_values": singular_values, "norms": None}


ANSWER: Mapping[str, Any] = MappingProxyType(
    {
        "model": examples.ANSWER["model"],
        "input": examples.ANSWER["input"],
        "dtype": "float64",
        "jacobian": {
            "of": "blocks.0.resid_post",
            "by": "blocks.0.resid_pre",
            "position": 2,
            "source": 2,
            "batch": None,
            "identity": 1,
            "whole": _map(
                [
                    [1.1598710365388167, 0.2639268910189393],
                    [0.1767680834378125, 1.0714869948199106],
                ],
                [1.341265104562067, 0.8917945278365083],
            ),
            "branch": _map(
                [
                    [0.15987103653881685, 0.2639268910189393],
                    [0.1767680834378125, 0.0714869948199106],
                ],
                [0.3483508177403114, 0.10111975898524753],
            ),
            "factors": None,
            "not_factored": None,
        },
        "measure": None,
        "gradients": None,
        "attribution": None,
        "absent": {},
        "cost": {"parameters": 22, "flops": 576, "elements": 12, "bytes": 3800},
    }
)
"""What the example `itself` is answered."""
