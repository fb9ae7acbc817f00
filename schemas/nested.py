"""Nested lists as arrays: strict about element types, every fault located inside.

Lists that are right are copied, row by row, and little else: `array` of the standard library
takes no text and no null for a number, and true, which it takes for 1, is looked for only where a
row holds a 0 or a 1. What is wrong is looked for only then, row by row, and no further than
somebody reads.
"""

from array import array as packed_array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from typing import Any

import numpy as np

from compute.errors import Fault, Place
from compute.types import Array
from schemas.faulty import refuse

LARGEST = 2**53
"""The largest whole number that every reader of JSON keeps exactly."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What the elements of a tensor are: their exact types, in a word, the array's dtype, and how
    the module `array` calls that.

    Types are exact: true is no number, and a number in quotes is none either.
    """

    types: tuple[type, ...]
    word: str
    dtype: type[np.generic]
    code: str


NUMBERS = Kind((float, int), "number", np.float64, "d")
WHOLE_NUMBERS = Kind((int,), "whole number", np.int64, "q")
BOOLEANS = Kind((bool,), "true or false", np.bool_, "b")


def array(raw: object, kind: Kind, ranks: range) -> Array:
    """The array of a nested list of a kind; one error for all its faults.

    Numbers are finite; whole numbers are 0 to 2^53.
    """
    shape = _shape(raw, ranks)
    refuse(_rank_faults(raw, shape, ranks))
    rows = _rows(raw, shape)
    values = None if rows is None else _in(kind, rows)
    if values is None:
        refuse(_faults(raw, kind, shape, ()))
        raise AssertionError("a tensor that is no array has a fault")
    return values.reshape(shape)


def _shape(raw: object, ranks: range) -> tuple[int, ...]:
    """The lengths of the lists that come first; where those are not deep enough, of the first
    lists among the first entries: what is no list there is the fault."""
    first = _lengths(raw, ranks.stop, looked_at=1)
    return first if len(first) in ranks else _lengths(raw, ranks.stop, looked_at=16)


def _lengths(raw: object, most: int, looked_at: int) -> tuple[int, ...]:
    lengths: list[int] = []
    while isinstance(raw, list) and len(lengths) < most:
        lengths.append(len(raw))
        raw = next((inner for inner in raw[:looked_at] if isinstance(inner, list)), None)
    return tuple(lengths)


def _rows(raw: object, shape: Sequence[int]) -> list[list[Any]] | None:
    """The innermost lists in order; None where a list is empty or differs from the first."""
    if not shape:
        return [[raw]]
    level = [raw]
    for depth, length in enumerate(shape):
        if set(map(type, level)) != {list} or set(map(len, level)) != {length} or not length:  # type: ignore[arg-type]
            return None
        if depth < len(shape) - 1:
            level = list(chain.from_iterable(level))  # type: ignore[arg-type]
    return level  # type: ignore[return-value]


def _in(kind: Kind, rows: list[list[Any]]) -> Array | None:
    """(count,) of the kind's dtype; None where an element is not of it, or out of its range."""
    held = packed_array(kind.code)
    try:
        for row in rows:
            held.fromlist(row)
    except (TypeError, OverflowError):
        return None
    values: Array = np.frombuffer(held, kind.dtype)
    return values if _in_range(kind, values) and _of_types(kind, rows, values) else None


def _in_range(kind: Kind, values: Array) -> bool:
    if kind is NUMBERS:
        return bool(np.isfinite(values).all())
    return kind is BOOLEANS or bool(((values >= 0) & (values <= LARGEST)).all())


def _of_types(kind: Kind, rows: list[list[Any]], values: Array) -> bool:
    """Whether no true or false stands among numbers, and nothing else among those."""
    types = {*kind.types}
    if kind is BOOLEANS:
        return all(set(map(type, row)) == types for row in rows)
    alike = (values == 0) | (values == 1)
    if not alike.any():
        return True
    held = np.flatnonzero(alike.reshape(len(rows), -1).any(axis=1)).tolist()
    return all(set(map(type, rows[at])) <= types for at in held)


def _rank_faults(raw: object, shape: Sequence[int], ranks: range) -> Iterator[Fault]:
    if raw == []:
        yield Fault(code="empty", detail="A list here is empty.")
    elif len(shape) not in ranks:
        levels = " or ".join(map(str, ranks))
        detail = f"The entries are due in lists nested {levels} deep."
        if isinstance(raw, str):
            detail += " As base64 it is an object of dtype, shape and data."
        got = len(shape) if len(shape) < ranks.stop else f"{ranks.stop} or more"
        yield Fault(code="rank_mismatch", detail=detail, expected=list(ranks), got=got)


def _faults(raw: object, kind: Kind, shape: Sequence[int], place: Place) -> Iterator[Fault]:
    """What is wrong in a list of a shape, or in an element where the shape is ()."""
    if not shape:
        yield from _element_faults(raw, kind, place)
    elif not isinstance(raw, list):
        yield Fault(code="wrong_type", detail="A list is due here, as in the others.", place=place)
    elif not raw:
        yield Fault(code="empty", detail="A list here is empty.", place=place)
    else:
        if len(raw) != shape[0] and shape[0]:
            detail = f"A list of {shape[0]} entries is due here, as in the first."
            yield Fault(code="ragged", detail=detail, place=place, expected=shape[0], got=len(raw))
        for at in range(len(raw)) if shape[1:] else _suspects(raw, kind):
            yield from _faults(raw[at], kind, shape[1:], (*place, at))


def _suspects(row: list[Any], kind: Kind) -> Iterator[int]:
    """Where a row may hold what is not of the kind."""
    if _in(kind, [row]) is not None:
        return iter(())
    types, limit = kind.types, 0 if kind is WHOLE_NUMBERS else -LARGEST
    return (at for at, e in enumerate(row) if type(e) not in types or not limit <= e <= LARGEST)


def _element_faults(raw: object, kind: Kind, place: Place) -> Iterator[Fault]:
    if type(raw) not in kind.types:
        article = "" if kind is BOOLEANS else "a "
        detail = f"{article}{kind.word} is due here.".capitalize()
        yield Fault(code="wrong_type", detail=detail, place=place, got=_told(raw))
    elif isinstance(raw, int) and kind is WHOLE_NUMBERS and not 0 <= raw <= LARGEST:
        detail = "A number from 0 to 2^53 is due here."
        yield Fault(code="out_of_range", detail=detail, place=place)
    elif isinstance(raw, int | float) and not _is_finite(raw):
        detail = "This number is too large for float64."
        yield Fault(code="not_finite", detail=detail, place=place)


def _is_finite(number: float) -> bool:
    try:
        return isfinite(number)
    except OverflowError:  # an int beyond float64
        return False


_NAMES = {str: "string", type(None): "null", list: "list", dict: "object"}


def _told(raw: object) -> object:
    """A number or a truth value itself; of all else the kind alone."""
    if isinstance(raw, int | float):
        return raw if _is_finite(raw) else None
    return _NAMES[type(raw)]
