"""A tensor of a request as bytes of a safetensors body, in the place where it belongs.

Exact, and the fastest: numbers that need no other dtype are read where they lie.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from compute.errors import Fault
from compute.types import Array
from schemas.faulty import refuse
from schemas.nested import BOOLEANS, NUMBERS, WHOLE_NUMBERS, Kind
from schemas.packed import entry_faults

DTYPES: Mapping[Kind, Mapping[str, str]] = MappingProxyType(
    {
        NUMBERS: MappingProxyType({"F32": "<f4", "F64": "<f8", "F16": "<f2", "BF16": "<u2"}),
        WHOLE_NUMBERS: MappingProxyType({"I64": "<i8", "I32": "<i4", "U8": "|u1"}),
        BOOLEANS: MappingProxyType({"BOOL": "|u1"}),
    }
)
"""Kind of element -> dtypes of safetensors -> how NumPy reads their bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Binary:
    """An entry of a safetensors body: its dtype there, its shape, and its bytes in row order.

    It is neither a list nor an object: where no tensor is due it is of the wrong type.
    """

    dtype: str
    shape: tuple[int, ...]
    data: memoryview = field(repr=False)


def array(raw: Binary, kind: Kind, ranks: range) -> Array:
    """The numbers of an entry: float64 as float64, of the other floating dtypes as float32, whole
    numbers as int64; read-only where they are the body's own bytes. One error for all faults.

    Numbers are finite; whole numbers are 0 to 2^53; a byte of a boolean is 0 or 1.
    """
    refuse(_form_faults(raw, kind, ranks))
    stored = _numbers(raw, DTYPES[kind][raw.dtype])
    refuse(entry_faults(stored, kind, ()))
    if kind is NUMBERS:
        return stored
    return stored.view(np.bool_) if kind is BOOLEANS else stored.astype(np.int64, copy=False)


def _numbers(raw: Binary, code: str) -> npt.NDArray[Any]:
    """The numbers as stored; of two bytes, exactly as float32. bfloat16 is its upper half."""
    stored = np.require(np.frombuffer(raw.data, code).reshape(raw.shape), requirements="A")
    if raw.dtype == "BF16":
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.astype(np.float32) if raw.dtype == "F16" else stored


def _form_faults(raw: Binary, kind: Kind, ranks: range) -> Iterator[Fault]:
    if raw.dtype not in DTYPES[kind]:
        taken = list(DTYPES[kind])
        detail = f"A tensor of dtype {' or '.join(taken)} is due here."
        yield Fault(code="wrong_dtype", detail=detail, expected=taken, got=raw.dtype)
    if len(raw.shape) not in ranks:
        detail = f"The tensor has {' or '.join(map(str, ranks))} axes."
        got = len(raw.shape)
        yield Fault(code="rank_mismatch", detail=detail, expected=list(ranks), got=got)
    elif 0 in raw.shape:
        detail = "An axis has at least one entry."
        yield Fault(code="empty", detail=detail, got=list(raw.shape))
