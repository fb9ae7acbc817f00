"""An answer as JSON, in pieces: numbers print shortest and round-trip, or stand as base64."""

from binascii import b2a_base64
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import orjson

from compute.types import Value
from service.forms import tensors
from service.forms.form import Form
from service.forms.rounding import rounded
from service.forms.tensors import Exact, Piece, Shown, Tensors

_NUMPY = orjson.OPT_SERIALIZE_NUMPY

_AT_ONCE = 1 << 17
"""Numbers that are written at once: 2 to 4 ms."""

_FEW = 1 << 12
"""Numbers whose text is looked through sooner than they are."""

_MISREAD = np.float32("7.0385307e-26")

_ONE_DIGIT_MORE = (b"7.038531e-26", b"7.0385307e-26")
"""The one float32 whose shortest text means its neighbour to a reader who makes a float64 of it
and rounds that, as JavaScript and Python do; and the text that means it to all."""


def dumps(value: object, form: Form) -> bytes:
    """A value as JSON."""
    exact = form.is_nested and form.digits is None
    options = orjson.OPT_PASSTHROUGH_DATACLASS | (_NUMPY if exact else 0)
    return orjson.dumps(value, partial(_written, form), options)


def answer(members: Mapping[str, object], form: Form) -> list[Piece]:
    """One JSON object in pieces, its members in their order."""
    pieces: list[Piece] = []
    for at, (name, value) in enumerate(members.items()):
        pieces.append((b"," if at else b"{") + orjson.dumps(name) + b":")
        pieces += _in_turn(value, form) if isinstance(value, Tensors) else [dumps(value, form)]
    return [*pieces, b"}\n"]


def _in_turn(held: Tensors, form: Form) -> Iterator[Piece]:
    before = b"{"
    for name, shown in held.named:
        first, *rest = tensor(shown, form)
        yield b"".join((before, orjson.dumps(name), b":", first))
        yield from rest
        before = b","
    yield b"{}" if before == b"{" else b"}"


def _written(form: Form, value: object) -> object:
    """What orjson does not know, as what it knows."""
    if isinstance(value, Shown):
        return orjson.Fragment(b"".join(tensor(value, form)))
    if isinstance(value, np.ndarray | np.generic):
        return _array(form, np.asarray(value))
    if isinstance(value, Exact):
        return _array(replace(form, digits=None), value.values, is_packed=value.packed)
    if isinstance(value, Tensors):
        return dict(value.named)
    return orjson.Fragment(orjson.dumps(value))


def tensor(shown: Shown, form: Form) -> list[Piece]:
    """A tensor's object in pieces: what is told, its data or summary, what of it is not finite."""
    if shown.summed:
        return [dumps({**shown.told, "summary": _summary(shown.values, form)}, form)]
    here = shown.rounded(form.digits)
    behind = here.after
    if not form.is_nested:
        written: list[Piece] = [_base64(here.values)]
        behind = {**tensors.nonfinite(here.values), **behind}
    elif here.values.size <= _FEW:
        text = _numbers(here.values)
        written = [text]
        if b"n" in text:  # a null: a byte of a short text is found sooner than a sum is made
            behind = {**tensors.nonfinite(here.values), **behind}
    else:
        written = list(_nested(here.values))
        behind = {**tensors.nonfinite(here.values), **behind}
    end = b"," + dumps(behind, form)[1:] if behind else b"}"
    return [orjson.dumps(here.told)[:-1] + b',"data":', *written, end]


def _nested(values: Value) -> Iterator[Piece]:
    """The numbers of a tensor as nested lists, each in its shortest form; null for what is none.

    In pieces of at most `_AT_ONCE` numbers, or a row: while one is made, nothing else runs.
    """
    if values.size <= _AT_ONCE or not values.ndim:
        yield _numbers(values)
        return
    rows = _AT_ONCE * len(values) // values.size
    for start in range(0, len(values), max(1, rows)):
        yield b"," if start else b"["
        if rows or values.ndim == 1:
            yield memoryview(_numbers(values[start : start + rows]))[1:-1]
        else:
            yield from _nested(values[start])
    yield b"]"


def _numbers(values: Value) -> bytes:
    data = values if values.flags.c_contiguous else np.ascontiguousarray(values)
    written = orjson.dumps(data, option=_NUMPY)
    return written.replace(*_ONE_DIGIT_MORE) if _may_be_misread(data, written) else written


def _may_be_misread(values: Value, written: bytes) -> bool:
    if values.dtype != np.float32:
        return False
    return b"e" in written if values.size <= _FEW else bool((np.abs(values) == _MISREAD).any())


def _base64(values: Value) -> bytes:
    """The bytes in row order, little-endian, as a JSON string. RFC 4648, section 4."""
    return b'"%b"' % b2a_base64(tensors.as_bytes(values), newline=False)


def _packed(values: Value) -> Mapping[str, object]:
    """An array as a request takes it: dtype, shape, base64."""
    data = orjson.Fragment(_base64(values))
    return {"dtype": values.dtype.name, "shape": values.shape, "data": data}


def _summary(values: Value, form: Form) -> Mapping[str, object]:
    told = tensors.summary(values)
    if form.digits is None:
        return told
    return {name: rounded(x, form.digits) for name, x in told.items()}


def _array(form: Form, values: Value, *, is_packed: bool = False) -> object:
    """A list of numbers that is no tensor; lists of floating point numbers may be rounded and
    packed, whole numbers, booleans and single numbers stay what they are."""
    if values.dtype.kind != "f" or not values.ndim:
        return _plain(values)
    here = values if form.digits is None else rounded(values, form.digits)
    return _packed(here) if is_packed or not form.is_nested else _plain(here)


def _plain(values: Value) -> orjson.Fragment:
    value = np.ascontiguousarray(values) if values.ndim else values[()]
    return orjson.Fragment(orjson.dumps(value, option=_NUMPY))
