"""The tensors of an answer in any of its forms, as NumPy arrays."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Tensor = dict[str, Any]

DTYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8"}


def decode(body: bytes, content_type: str) -> dict[str, Array]:
    """Name -> array, from the bytes of a response and its Content-Type."""
    if "safetensors" in content_type:
        start = 8 + int.from_bytes(body[:8], "little")
        header = json.loads(body[8:start])
        del header["__metadata__"]
        return {name: stored(memoryview(body)[start:], told) for name, told in header.items()}
    if "problem" in content_type:
        raise ValueError(json.loads(body))
    if content_type.startswith("application/json;") or content_type == "application/json":
        return dict(tensors(json.loads(body)))
    if not body.endswith(b"}\n"):
        raise ValueError("The stream was cut off.")
    lines = [json.loads(line) for line in body.splitlines()]
    if "end" not in lines[-1]:
        raise ValueError(lines[-1].get("error", "The stream was cut off."))
    found: dict[str, Array] = {}
    for line in (line for line in lines[1:] if "data" in line):
        name, shape = line.get("stage") or line["entry"], line["shape"]
        whole = found.setdefault(name, np.empty(shape, line["dtype"]))
        first, after = line.get("rows", [0, None])
        whole.reshape(-1, shape[-1])[first:after] = values(line).reshape(-1, shape[-1])
    return found


def stored(data: memoryview, told: Tensor) -> Array:
    """A tensor of a safetensors body."""
    first, after = told["data_offsets"]
    return np.frombuffer(data[first:after], DTYPES[told["dtype"]]).reshape(told["shape"])


def tensors(value: object, place: str = "") -> Iterator[tuple[str, Array]]:
    """Each tensor of an answer in JSON: by its stage, or else by its JSON Pointer."""
    if isinstance(value, dict) and isinstance(value.get("data"), str | list) and "dtype" in value:
        above, _, key = place.rpartition("/")
        name = key if above == "/tensors" else place or "/data"
        yield name, values(value).reshape(value["shape"])
    elif isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in inner:
            yield from tensors(one, f"{place}/{key}")


def values(tensor: Tensor) -> Array:
    """The numbers of a tensor, or of a piece of its rows: base64, or nested lists."""
    data, dtype = tensor["data"], np.dtype(tensor["dtype"]).newbyteorder("<")
    if isinstance(data, str):
        return np.frombuffer(base64.b64decode(data), dtype)
    flat = np.array(data, dtype).reshape(-1)  # null becomes nan
    runs = tensor.get("nonfinite", {})
    if runs == "-inf":
        flat[np.isnan(flat)] = -np.inf
        return flat
    for kind, told in runs.items():
        for first, length in told:
            flat[first : first + length] = float(kind)
    return flat
