"""Nested lists of numbers as arrays: strict about element types, faults located inside.

A validator raises one Pydantic error of type `tensor`, whose context carries every fault with
its place inside the tensor; nothing of what was sent is repeated.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from compute.errors import MOST_FAULTS, Fault, Place
from compute.types import Array, DType

_WORDS = {float: "a number", int: "a whole number", bool: "true or false"}


def nested(raw: object, kinds: tuple[type, ...], ranks: range) -> tuple[list[Any], tuple[int, ...]]:
    """The elements of a nested list in row order, and its shape; one error for all its faults.

    Element types are exact: true is no number, and a number in quotes is none either.
    """
    level: list[Any] = [raw]
    shape: list[int] = []
    while level and isinstance(level[0], list) and len(shape) < ranks.stop:
        shape.append(len(level[0]))
        _refuse([*_ragged(level, shape)][:MOST_FAULTS])
        level = list(chain.from_iterable(level))
    _refuse(_rank_faults(shape, ranks))
    if not set(map(type, level)) <= set(kinds):
        _refuse(_type_faults(level, kinds, shape))
    return level, tuple(shape)


def _ragged(level: list[Any], shape: Sequence[int]) -> list[Fault]:
    length = shape[-1]
    outer = shape[:-1]
    wrong = [at for at, row in enumerate(level) if type(row) is not list or len(row) != length]
    if not length:
        return [_fault("empty", "A list here is empty.", outer, 0)]
    return [
        _fault("ragged", f"A list of {length} entries is due here, as in the first.", outer, at)
        for at in wrong[:MOST_FAULTS]
    ]


def _rank_faults(shape: Sequence[int], ranks: range) -> list[Fault]:
    if len(shape) in ranks:
        return []
    levels = " or ".join(map(str, ranks))
    detail = f"The numbers are due in lists nested {levels} deep."
    return [Fault(code="rank_mismatch", detail=detail, expected=list(ranks), got=len(shape))]


def _type_faults(level: list[Any], kinds: tuple[type, ...], shape: Sequence[int]) -> list[Fault]:
    wrong = [at for at, value in enumerate(level) if type(value) not in kinds]
    detail = f"{_WORDS[kinds[0]].capitalize()} is due here."
    return [_fault("wrong_type", detail, shape, at) for at in wrong[:MOST_FAULTS]]


def _fault(code: str, detail: str, shape: Sequence[int], at: int) -> Fault:
    place = tuple(int(i) for i in np.unravel_index(at, tuple(shape))) if shape else ()
    return Fault(code=code, detail=detail, place=place)


def _refuse(faults: list[Fault]) -> None:
    if faults:
        raise PydanticCustomError("tensor", "The tensor is malformed.", {"faults": faults})


def floats(raw: object, ranks: range) -> npt.NDArray[np.float64]:
    """A float64 array of a nested list of numbers, all finite."""
    flat, shape = nested(raw, (float, int), ranks)
    try:
        values = np.array(flat, np.float64)
    except OverflowError:
        values = np.array([_float(value) for value in flat])
    wrong = np.flatnonzero(~np.isfinite(values))[:MOST_FAULTS]
    _refuse([_fault("not_finite", "A finite number is due here.", shape, int(at)) for at in wrong])
    return values.reshape(shape)


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def whole_numbers(raw: object, ranks: range) -> npt.NDArray[np.int64]:
    """An int64 array of a nested list of whole numbers from 0 to 2^53."""
    flat, shape = nested(raw, (int,), ranks)
    wrong = [at for at, value in enumerate(flat) if not 0 <= value <= 2**53][:MOST_FAULTS]
    _refuse(
        [_fault("out_of_range", "A number from 0 to 2^53 is due here.", shape, i) for i in wrong]
    )
    return np.array(flat, np.int64).reshape(shape)


def booleans(raw: object, ranks: range) -> npt.NDArray[np.bool_]:
    """A boolean array of a nested list of true and false."""
    flat, shape = nested(raw, (bool,), ranks)
    return np.array(flat, np.bool_).reshape(shape)


def _schema(item: dict[str, Any], ranks: range) -> dict[str, Any]:
    nestings = []
    for rank in ranks:
        schema = item
        for _ in range(rank):
            schema = {"type": "array", "items": schema, "minItems": 1}
        nestings.append(schema)
    return nestings[0] if len(nestings) == 1 else {"oneOf": nestings}


_NUMBER = {"type": "number"}
_WHOLE = {"type": "integer", "minimum": 0, "maximum": 2**53}
_BOOLEAN = {"type": "boolean"}

Rows = Annotated[
    npt.NDArray[np.float64],
    PlainValidator(lambda raw: floats(raw, range(2, 4))),
    WithJsonSchema(_schema(_NUMBER, range(2, 4))),
]
"""(n, d) or (b, n, d) numbers."""

Weight = Annotated[
    npt.NDArray[np.float64],
    PlainValidator(lambda raw: floats(raw, range(1, 4))),
    WithJsonSchema(_schema(_NUMBER, range(1, 4))),
]
"""Numbers nested one to three deep."""

Number = Annotated[
    npt.NDArray[np.float64],
    PlainValidator(lambda raw: floats(raw, range(4))),
    WithJsonSchema(_schema(_NUMBER, range(4))),
]
"""One number, or numbers nested up to three deep."""

Ids = Annotated[
    npt.NDArray[np.int64],
    PlainValidator(lambda raw: whole_numbers(raw, range(1, 3))),
    WithJsonSchema(_schema(_WHOLE, range(1, 3))),
]
"""(n) or (b, n) whole numbers."""

KeyMask = Annotated[
    npt.NDArray[np.bool_],
    PlainValidator(lambda raw: booleans(raw, range(1, 3))),
    WithJsonSchema(_schema(_BOOLEAN, range(1, 3))),
]
"""(n) or (b, n) booleans."""

PairMask = Annotated[
    npt.NDArray[np.bool_],
    PlainValidator(lambda raw: booleans(raw, range(2, 4))),
    WithJsonSchema(_schema(_BOOLEAN, range(2, 4))),
]
"""(n, m) or (b, n, m) booleans."""


def cast(values: Array, dtype: DType) -> Array:
    """The values in a dtype; what it cannot hold is inf, and `overflows` says where."""
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def overflows(values: Array, place: Place) -> list[Fault]:
    """The first entries that are finite as sent and not in the dtype asked for."""
    detail = f"This number is beyond the range of {values.dtype}."
    return [
        Fault(code="overflow", detail=detail, place=(*place, *(int(i) for i in index)))
        for index in np.argwhere(~np.isfinite(values))[:MOST_FAULTS]
    ]
