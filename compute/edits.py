"""Weights brought by a request: whole tensors, and edits of slices, over any source."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import chain, islice
from types import EllipsisType

import numpy as np

from compute import stages, tensors
from compute.config import ModelConfig
from compute.errors import MOST_FAULTS, Fault, Place, WeightsError, out_of_range, refuse_if
from compute.initial import Source
from compute.tensors import Tensor
from compute.types import Array, Edit


def check(config: ModelConfig, given: Mapping[str, Array], edits: Sequence[Edit]) -> None:
    """Raise a WeightsError with every tensor and edit that does not fit the config."""
    listed = tensors.tensors(config)
    found = chain(
        (fault for name, values in given.items() for fault in _misfit(name, values, listed)),
        (fault for at, edit in enumerate(edits) for fault in _edit_faults(edit, at, listed)),
    )
    refuse_if(WeightsError, list(islice(found, MOST_FAULTS)))


def changed(
    source: Source,
    given: Mapping[str, Array],
    edits: Sequence[Edit],
    check: Callable[[], None] = lambda: None,
) -> Source:
    """The source with whole tensors replaced, then edited in the order of the edits.

    `check` is called before each edit and may raise to stop the work.
    """

    def fetch(tensor: Tensor) -> Array:
        values = given[tensor.name] if tensor.name in given else source(tensor)
        mine = [edit for edit in edits if edit.tensor == tensor.name]
        return _edited(values, tensor, mine, check) if mine else values

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
    local = stages.local_name(name)
    ends = {
        stages.local_name(other): other for other in reversed(list(listed))
    }  # of the first block
    detail, near = "This config has no such tensor.", None
    if local in ends and name.startswith("blocks."):
        detail = f"{detail} The blocks are 0 to {_last_block(listed)}."
    elif local in tensors.EXISTS and local not in ends:
        detail = f"{detail} {local} exists where {tensors.EXISTS[local]}."
    else:
        near = [ends[end] for end in _near(local, list(ends))]
        detail = f"{detail} Near it: {', '.join(near)}."
    return Fault(code="unknown_tensor", detail=detail, place=place, expected=near)


def _near(local: str, ends: Sequence[str]) -> list[str]:
    """Names with the same last part, else names like it, else the last ones there are."""
    alike = [end for end in ends if end.rpartition(".")[2] == local]
    return alike or get_close_matches(local, ends, n=3) or list(ends[-3:])


def _last_block(listed: Mapping[str, Tensor]) -> int:
    return max(layer for name in listed if (layer := stages.layer_of(name)) is not None)


def _edit_faults(edit: Edit, index: int, listed: Mapping[str, Tensor]) -> Iterator[Fault]:
    place: Place = ("edits", index)
    if edit.tensor not in listed:
        yield _unknown(edit.tensor, listed, (*place, "tensor"))
        return
    faults = list(_where_faults(edit, place, listed[edit.tensor]))
    yield from faults[:MOST_FAULTS]
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
        yield from out_of_range(tensor.name, word, indices, length, (*place, "where", word))
        inside = [index % length for index in indices if -length <= index < length]
        if len(set(inside)) < len(inside):
            detail = f"Each entry of {word} is changed once: it stands here twice."
            yield Fault(code="index_twice", detail=detail, place=(*place, "where", word))


def _value_faults(edit: Edit, place: Place, tensor: Tensor) -> Iterator[Fault]:
    pairs = zip(tensor.words, tensor.shape, strict=True)
    target = tuple(len(edit.where.get(word, range(length))) for word, length in pairs)
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


def _index(edit: Edit, tensor: Tensor) -> EllipsisType | tuple[np.ndarray, ...]:
    if not edit.where:
        return ...
    pairs = zip(tensor.words, tensor.shape, strict=True)
    return np.ix_(*(np.arange(n)[list(edit.where.get(word, range(n)))] for word, n in pairs))


def _edited(
    values: Array, tensor: Tensor, edits: Sequence[Edit], check: Callable[[], None]
) -> Array:
    copy = np.array(values)
    for edit in edits:
        check()
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
