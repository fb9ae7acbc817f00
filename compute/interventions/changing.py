"""One resolved change of a stage, and how its values are made. Read through interventions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import EllipsisType

import numpy as np

from compute import derived, stages
from compute.errors import Fault
from compute.stages import Stage
from compute.types import Array, InterventionOp, Value

BY_VALUE = ("scale", "add", "set")
"""The ops that take a value."""

_ALONG = ("n", "m", "s")
"""The axes of positions; a mean is taken over the first of them that a stage has."""

_WHOLE = "ffn.experts"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Change:
    """A change of a slice of one stage of one block.

    at: the intervention's place in the list. where: axis letter -> indices from the start. over:
    axis letters of a mean, empty for the default. source: the donor of a patch or a mean.
    """

    at: int
    name: str
    stage: Stage
    op: InterventionOp
    where: Mapping[str, tuple[int, ...]]
    value: float | Array | None
    over: tuple[str, ...]
    source: int | None

    def of(self, name: str) -> "Change":
        """The same change of another block's stage."""
        return replace(self, name=name)


def changed(
    changes: Sequence[Change],
    donors: Mapping[int, Mapping[str, Value]],
    check: Callable[[], None],
    x: Value,
) -> Value:
    """A stage's value with its changes made in order: a new array of the same dtype.

    `check` is called before each change and may raise to stop the work.
    """
    made = np.array(x)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):  # as in the driver
        for change in changes:
            check()
            index = _index(change, made)
            donor = None if change.source is None else donors[change.source][change.name]
            made[index] = _replaced(change, made, made[index], donor)
    return made


def misfit(change: Change, lengths: Mapping[str, int]) -> list[Fault]:
    """What is wrong with a change's value: its shape, or an expert that is none."""
    if change.stage.name == _WHOLE and change.op not in ("set", "patch"):
        detail = f"{_WHOLE} holds numbers of experts: only set and patch change them."
        return [Fault(code="whole_numbers", detail=detail, place=(change.at, "op"))]
    if change.value is None:
        return []
    axes = stages.axes_of(change.stage, "b" in lengths)
    target = tuple(len(change.where.get(x, range(lengths[x]))) for x in axes)
    if np.asarray(change.value).shape not in ((), target):
        return [_wrong_shape(change, target)]
    return _no_experts(change, target, lengths) if change.stage.name == _WHOLE else []


def axes_over(change: Change, batched: bool) -> tuple[str, ...]:
    """The axes that a mean is taken over, of values with or without a batch axis.

    By default a donor's batch, else the positions.
    """
    if change.over:
        return change.over
    if batched and change.source is not None:
        return ("b",)
    return tuple(x for x in change.stage.axes if x in _ALONG)[:1]


def _wrong_shape(change: Change, target: tuple[int, ...]) -> Fault:
    return Fault(
        code="shape_mismatch",
        detail=f"value is one number, or numbers in the shape of the slice, {list(target)}.",
        place=(change.at, "value"),
        expected=list(target),
        got=list(np.asarray(change.value).shape),
    )


def _no_experts(change: Change, target: tuple[int, ...], lengths: Mapping[str, int]) -> list[Fault]:
    """Numbers that are no experts, or one expert twice for a token."""
    assert change.value is not None  # noqa: S101 - misfit looked
    values = np.broadcast_to(np.asarray(change.value, np.float64), target)
    place, count = (change.at, "value"), lengths["e"]
    if not ((values == np.floor(values)) & (values >= 0) & (values < count)).all():
        detail = f"Experts are whole numbers from 0 to {count - 1}."
        return [Fault(code="no_such_expert", detail=detail, place=place)]
    if (np.diff(np.sort(values, axis=-1), axis=-1) == 0).any():
        detail = "The experts of one token are all different."
        return [Fault(code="expert_twice", detail=detail, place=place)]
    return []


def _letters(change: Change, x: Value) -> tuple[str, ...]:
    return stages.axes_of(change.stage, x.ndim > len(change.stage.axes))


def _index(change: Change, x: Value) -> EllipsisType | tuple[np.ndarray, ...]:
    if not change.where:
        return ...
    pairs = zip(_letters(change, x), x.shape, strict=True)
    return np.ix_(*(np.asarray(change.where.get(y, range(n)), np.intp) for y, n in pairs))


def _replaced(change: Change, whole: Value, old: Value, donor: Value | None) -> Value:
    """The new values of a slice: in its shape and dtype."""
    if change.op == "zero":
        return np.zeros_like(old)
    if change.op == "mean":
        return _mean(change, whole if donor is None else donor, old)
    if donor is not None:
        return _fitted(change, donor, old, change.where)
    value = np.asarray(change.value, old.dtype)
    if change.op == "scale":
        return value * old
    return old + value if change.op == "add" else np.broadcast_to(value, old.shape)


def _mean(change: Change, x: Value, old: Value) -> Value:
    """The mean over the axes asked for, summed in float64, in a slice's shape and dtype."""
    letters = _letters(change, x)
    over = axes_over(change, "b" in letters)
    axes = tuple(at for at, letter in enumerate(letters) if letter in over)
    mean = x.mean(axis=axes, keepdims=True, dtype=np.float64).astype(old.dtype)
    left = {letter: indices for letter, indices in change.where.items() if letter not in over}
    return _fitted(change, mean, old, left)


def _fitted(change: Change, x: Value, old: Value, where: Mapping[str, tuple[int, ...]]) -> Value:
    """Another run's values at the same indices, in a slice's shape."""
    taken = derived.cut(x, change.stage.axes, where)
    rows = taken[0] if taken.ndim > old.ndim else taken
    return np.broadcast_to(rows, old.shape)
