"""Weights brought by a request: whole tensors, and edits of slices, over any source."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

import numpy as np

from compute import tensors
from compute.config import ModelConfig
from compute.errors import Fault, Place, WeightsError, refuse_if
from compute.initial import Source
from compute.tensors import Tensor
from compute.types import Array, Edit


def check(config: ModelConfig, given: Mapping[str, Array], edits: Sequence[Edit]) -> None:
    """Raise a WeightsError with every tensor and edit that does not fit the config."""
    listed = tensors.tensors(config)
    faults = [fault for name, values in given.items() for fault in _misfit(name, values, listed)]
    for index, edit in enumerate(edits):
        faults += _edit_faults(edit, index, listed)
    refuse_if(WeightsError, faults)


def changed(source: Source, given: Mapping[str, Array], edits: Sequence[Edit]) -> Source:
    """The source with whole tensors replaced, then edited in the order of the edits."""

    def fetch(tensor: Tensor) -> Array:
        values = given[tensor.name] if tensor.name in given else source(tensor)
        mine = [edit for edit in edits if edit.tensor == tensor.name]
        return _edited(values, tensor, mine) if mine else values

    return fetch


def _misfit(name: str, values: Array, listed: Mapping[str, Tensor]) -> Iterator[Fault]:
    place: Place = ("tensors", name)
    if name not in listed:
        yield _unknown(name, listed, place)
    elif values.shape != listed[name].shape:
        tensor = listed[name]
        detail = f"{name} has the axes ({', '.join(tensor.words)})."
        expected, got = list(tensor.shape), list(values.shape)
        yield Fault(code="shape_mismatch", detail=detail, place=place, expected=expected, got=got)


def _unknown(name: str, listed: Mapping[str, Tensor], place: Place) -> Fault:
    last = name.rpartition(".")[2]
    near = get_close_matches(name, list(listed), n=3) or list(listed)[:3]
    others = f"Near it: {', '.join(near)}."
    exists = f"{last} exists where {tensors.EXISTS[last]}." if last in tensors.EXISTS else others
    detail = f"This config has no such tensor. {exists}"
    return Fault(code="unknown_tensor", detail=detail, place=place, expected=near)


def _edit_faults(edit: Edit, index: int, listed: Mapping[str, Tensor]) -> Iterator[Fault]:
    place: Place = ("edits", index)
    if edit.tensor not in listed:
        yield _unknown(edit.tensor, listed, (*place, "tensor"))
        return
    faults = list(_where_faults(edit, place, listed[edit.tensor]))
    yield from faults
    if not faults:
        yield from _value_faults(edit, place, listed[edit.tensor])


def _where_faults(edit: Edit, place: Place, tensor: Tensor) -> Iterator[Fault]:
    lengths = dict(zip(tensor.words, tensor.shape, strict=True))
    for word, indices in edit.where.items():
        if word not in lengths:
            detail = f"{tensor.name} has the axes {', '.join(lengths)}."
            yield Fault(code="no_such_axis", detail=detail, place=(*place, "where", word))
            continue
        length = lengths[word]
        for at, value in enumerate(indices):
            if not -length <= value < length:
                yield Fault(
                    code="index_out_of_range",
                    detail=f"{word} has {length} entries in {tensor.name}.",
                    place=(*place, "where", word, at),
                    expected=f"from {-length} to {length - 1}",
                    got=value,
                )


def _value_faults(edit: Edit, place: Place, tensor: Tensor) -> Iterator[Fault]:
    target = np.empty(tensor.shape, np.bool_)[_index(edit, tensor)].shape
    shape = np.shape(edit.value)
    if shape not in ((), target):
        detail = f"value is one number, or numbers in the shape of the slice, {list(target)}."
        yield Fault(
            code="shape_mismatch",
            detail=detail,
            place=(*place, "value"),
            expected=list(target),
            got=list(shape),
        )


def _index(edit: Edit, tensor: Tensor) -> tuple[np.ndarray, ...]:
    pairs = zip(tensor.words, tensor.shape, strict=True)
    return np.ix_(*(np.arange(n)[list(edit.where.get(word, range(n)))] for word, n in pairs))


def _edited(values: Array, tensor: Tensor, edits: Sequence[Edit]) -> Array:
    copy = np.array(values)
    for edit in edits:
        index = _index(edit, tensor)
        copy[index] = _applied(edit, copy[index])
    return copy


def _applied(edit: Edit, old: Array) -> Array:
    value = np.asarray(edit.value, old.dtype)
    with np.errstate(over="ignore"):  # a weight beyond the dtype is inf, and its trace says so
        if edit.op == "scale":
            return old * value
        if edit.op == "add":
            return old + value
    return np.broadcast_to(value if edit.op == "set" else np.zeros((), old.dtype), old.shape)
