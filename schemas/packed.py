"""A tensor as base64: the bytes of its numbers, with their dtype and shape.

About a third of the length of nested lists, and exact to the bit.
"""

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator, Mapping
from math import prod
from types import MappingProxyType
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from compute.errors import Fault, Place, first_entries
from compute.types import Array
from schemas.base import Asked
from schemas.faulty import refuse
from schemas.nested import BOOLEANS, LARGEST, NUMBERS, WHOLE_NUMBERS, Kind

_BYTES = MappingProxyType(
    {"float32": "<f4", "float64": "<f8", "int32": "<i4", "int64": "<i8", "bool": "|u1"}
)
"""dtype -> how NumPy reads it: little-endian."""

_PIECE = 1 << 20  # characters that are decoded at once: other threads wait for that long

Length = Annotated[int, Field(ge=1, le=1 << 31)]


class Packed(Asked):
    """The bytes of a tensor, in row order, little-endian, as base64 (RFC 4648, section 4)."""

    dtype: str = Field(description="What the bytes are.")
    shape: list[Length] = Field(max_length=8, description="The length of each axis.")
    data: str = Field(description="The bytes, padded with =.")


class PackedNumbers(Packed):
    """Numbers as the base64 of their bytes: in row order, little-endian, padded with =."""

    dtype: Literal["float32", "float64"] = Field(description="What the bytes are.")


class PackedWholeNumbers(Packed):
    """Whole numbers as the base64 of their bytes: in row order, little-endian, padded with =."""

    dtype: Literal["int32", "int64"] = Field(description="What the bytes are.")


class PackedBooleans(Packed):
    """Booleans as the base64 of their bytes, each 0 or 1, in row order, padded with =."""

    dtype: Literal["bool"] = Field(description="One byte each: 0 false, 1 true.")


FORMS: Mapping[Kind, type[Packed]] = MappingProxyType(
    {NUMBERS: PackedNumbers, WHOLE_NUMBERS: PackedWholeNumbers, BOOLEANS: PackedBooleans}
)
"""Kind of element -> what it is packed as."""


def array(packed: Packed, kind: Kind, ranks: range) -> Array:
    """The array of a packed tensor, numbers in the dtype they came in; one error for all faults.

    Numbers are finite; whole numbers are 0 to 2^53; a byte of a boolean is 0 or 1.
    """
    refuse(_size_faults(packed, ranks))  # before anything is decoded
    decoded = _decoded(packed.data, _bytes_due(packed))
    refuse([] if decoded else [_not_base64()])
    stored: Array = np.frombuffer(decoded, _BYTES[packed.dtype]).reshape(packed.shape)
    refuse(entry_faults(stored, kind, ("data",)))
    return stored if kind is NUMBERS else stored.astype(kind.dtype)


def _size_faults(packed: Packed, ranks: range) -> Iterator[Fault]:
    if len(packed.shape) not in ranks:
        axes = " or ".join(map(str, ranks))
        detail = f"The tensor has {axes} axes."
        got = len(packed.shape)
        yield Fault(
            code="rank_mismatch", detail=detail, place=("shape",), expected=list(ranks), got=got
        )
    due = _bytes_due(packed)
    if len(packed.data) != _encoded_length(due):
        detail = (
            f"The shape in {packed.dtype} takes {due} bytes, {_encoded_length(due)} characters "
            "of base64 with its padding."
        )
        place: Place = ("data",)
        expected, got = _encoded_length(due), len(packed.data)
        yield Fault(code="wrong_length", detail=detail, place=place, expected=expected, got=got)


def _bytes_due(packed: Packed) -> int:
    return prod(packed.shape) * np.dtype(_BYTES[packed.dtype]).itemsize


def _encoded_length(size: int) -> int:
    return 4 * -(-size // 3)


def _not_base64() -> Fault:
    detail = "This is not base64 in the standard alphabet (A-Z, a-z, 0-9, +, /), padded with =."
    return Fault(code="not_base64", detail=detail, place=("data",))


def _decoded(data: str, due: int) -> bytes:
    """So many bytes; none where it is no base64 of them."""
    pieces = (data[start : start + _PIECE] for start in range(0, len(data), _PIECE))
    try:
        decoded = b"".join(a2b_base64(piece, strict_mode=True) for piece in pieces)
    except ValueError:
        return b""
    last = b2a_base64(decoded[-(len(decoded) % 3 or 3) :], newline=False) if decoded else b""
    whole = len(decoded) == due and data.endswith(last.decode())  # no bits are left over
    return decoded if whole else b""


def entry_faults(stored: Array, kind: Kind, place: Place) -> Iterator[Fault]:
    """Entries that may not be. Bytes have no places inside: each fault is where they are, and says
    which entry it means."""
    if kind is BOOLEANS:
        wrong, rule = stored > 1, "a byte of a boolean is 0 or 1"
    elif kind is WHOLE_NUMBERS:
        wrong, rule = (stored < 0) | (stored > LARGEST), "numbers are 0 to 2^53 here"
    else:
        wrong, rule = ~np.isfinite(stored), "numbers are finite"
    code = "not_finite" if kind is NUMBERS else "out_of_range"
    for index in first_entries(wrong):
        detail = f"Entry {list(index)}: {rule}."
        yield Fault(code=code, detail=detail, place=place)
