"""Requests of POST /v1/sweep, and the answer to the first."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from service import examples

_HEADS = {
    "model": {"name": "induction"},
    "clean": {"text": "QWERTYQWERT"},
    "corrupted": {"text": "QWERTUQWERT"},
    "stage": "attn.z",
    "over": ["block", "head"],
    "measure": {"logit": "Y", "minus": "U"},
}
_POSITIONS = {**_HEADS, "stage": "resid_pre", "over": ["block", "position"]}
_DIRECT = {**_HEADS, "base": "clean", "path": "direct"}
_ABLATED = {
    "model": {"name": "induction"},
    "clean": {"text": "QWERTYQWERT"},
    "stage": "attn.z",
    "op": "zero",
    "over": ["block", "head"],
    "measure": {"logit": "Y"},
}
_STEERED = {
    "model": {"name": "eiffel-toy"},
    "clean": {"text": "the Eiffel tower"},
    "stage": "resid_pre",
    "op": "add",
    "value": [[0, 1]],
    "over": ["position"],
    "where": {"position": [0, 1]},
    "measure": {"stage": "blocks.0.resid_post", "direction": [0, 1], "position": 2},
    "dtype": "float64",
}

REQUESTS: Mapping[str, Any] = MappingProxyType(
    {
        "heads": {"summary": "Which head brings the answer back", "value": _HEADS},
        "positions": {"summary": "Where the answer is, block by block", "value": _POSITIONS},
        "direct": {"summary": "Which head says it by itself", "value": _DIRECT},
        "ablated": {"summary": "Each head silenced in turn", "value": _ABLATED},
        "steered": {"summary": "A vector added to one row or another", "value": _STEERED},
    }
)

ANSWER: Mapping[str, Any] = MappingProxyType(
    {
        "model": examples.ANSWER["model"],
        "inputs": {"clean": examples.ANSWER["input"], "corrupted": None},
        "stage": ["blocks.0.resid_pre"],
        "base": "clean",
        "axes": ["position"],
        "shape": [2],
        "dtype": "float64",
        "data": [0.8022241853595719, 1.345683596751954],
        "index": {"position": [0, 1]},
        "clean": 0.5034898434845538,
        "corrupted": None,
        "normalized": None,
        "reason": "there is no corrupted run to count from",
    }
)
"""What the example `steered` is answered."""
