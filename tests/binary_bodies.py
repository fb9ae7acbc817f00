"""Requests as safetensors bodies: written by the official library, or by hand where it refuses."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from safetensors.numpy import save

SAFETENSORS = {"Content-Type": "application/vnd.safetensors"}

NUMBERS = ("tensor", "value", "vector", "vectors", "direction")
WHOLE = ("token_ids", "position_ids", "token_types", "permutation")
MASKS = ("key_mask", "attention_mask")

Entry = tuple[str, list[int], bytes]
"""dtype, shape, bytes of a tensor."""


def body(request: object, tensors: Mapping[str, np.ndarray]) -> bytes:
    """A request and its tensors by their places."""
    return save(dict(tensors), metadata={"request": json.dumps(request)})


def by_hand(request: object, tensors: Mapping[str, Entry], **changes: object) -> bytes:
    """The same from dtypes, shapes and bytes, end to end; changes: of the header."""
    header: dict[str, Any] = {"__metadata__": {"request": json.dumps(request)}}
    data = b""
    for name, (dtype, shape, raw) in tensors.items():
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += raw
    header |= changes
    return framed(json.dumps({key: x for key, x in header.items() if x is not None}).encode(), data)


def framed(header: bytes, data: bytes = b"") -> bytes:
    """A header with its length before it, and what follows."""
    return len(header).to_bytes(8, "little") + header + data


def lifted(request: object) -> bytes:
    """A request in JSON with every tensor of it as an entry instead."""
    found: dict[str, np.ndarray] = {}
    return body(_left(request, "", found), found)


def _left(value: object, place: str, found: dict[str, np.ndarray]) -> object:
    """What is left of a value when its tensors are put into `found` by their places."""
    if isinstance(value, list):
        return [_left(inner, f"{place}/{at}", found) for at, inner in enumerate(value)]
    if not isinstance(value, dict):
        return value
    left = {}
    for key, inner in value.items():
        at = f"{place}/{key.replace('~', '~0').replace('/', '~1')}"
        dtype = _dtype(key, inner, place)
        if dtype is None:
            left[key] = _left(inner, at, found)
        else:
            found[at] = np.array(inner, dtype)
    return left


def _dtype(key: str, value: object, place: str) -> type | None:
    named = place.endswith(("/cache", "/tensors"))
    if not isinstance(value, list) and not (key == "value" and isinstance(value, int | float)):
        return None
    if key in WHOLE or key in MASKS:
        return np.int64 if key in WHOLE else np.bool_
    return np.float64 if key in NUMBERS or named else None
