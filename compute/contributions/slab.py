"""A few rows of a run, split and measured: what the answer at each of them is cut from."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from compute.contributions import answer, lens, measuring, readout
from compute.contributions.answer import Logit, Part, State, Sum
from compute.contributions.lens import Read
from compute.contributions.measuring import Numbers
from compute.contributions.parts import Group, Label
from compute.contributions.question import Asked
from compute.contributions.readout import Reading
from compute.contributions.seen import Seen
from compute.types import Array, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slab:
    """Everything about R rows: the sum that is split (R, d), its parts' numbers, which are shown.

    groups, starts: the parts, and which is the first of each group. logits: of the run, (R),
    where all that is read adds up to them. allowed: how far parts and sum may be apart.
    """

    asked: Asked
    values: Array
    numbers: Numbers
    chosen: Ints
    groups: list[Group]
    starts: list[int]
    vectors: measuring.Vectors | None
    reading: Reading | None
    logits: Array | None
    eps: float
    allowed: float

    def state(self, row: int) -> State:
        """What was split."""
        along = None if self.reading is None else float(self.values[row] @ self.reading.along[row])
        return State(
            norm=float(np.linalg.norm(self.values[row])),
            along=along,
            vector=self.values[row] if self.asked.question.vectors else None,
        )

    def parts(self, row: int) -> tuple[Part, ...]:
        """The parts shown, the rest as one, and the readout's biases."""
        labels = [self._label(row, int(which)) for which in self.chosen[row]]
        shown = answer.parts_of(row, labels, self.chosen, self.numbers, self.vectors, self.values)
        return (*shown, *self._constants(row))

    def sum(self, row: int) -> Sum:
        """Whether the parts add up."""
        return answer.judged(self.numbers.total[row], self.values[row], self.allowed)

    def logit(self, row: int) -> Logit | None:
        """Whether what they give adds up to the logit; None where it is none."""
        if self.logits is None or self.reading is None or self.numbers.along is None:
            return None
        constants = sum(float(x[row]) for x in self.reading.constants.values())
        total, value = float(self.numbers.along[row].sum()) + constants, float(self.logits[row])
        terms = (8.0 + self.values.shape[1] ** 0.5) * float(self.reading.size[row])
        of_parts = self.allowed * float(np.abs(self.reading.along[row]).sum())
        check = answer.judged(np.array([total]), np.array([value]), self.eps * terms + of_parts)
        return Logit(value=value, sum=total, check=check)

    def _constants(self, row: int) -> list[Part]:
        """The readout's biases: parts of a logit, and of no state."""
        if self.reading is None or not self.asked.is_logit:
            return []
        return [Part(id=name, along=float(x[row])) for name, x in self.reading.constants.items()]

    def _label(self, row: int, which: int) -> Label:
        """The name of a part, by its place among all."""
        group = bisect_right(self.starts, which) - 1
        return self.groups[group].label(row, which - self.starts[group])


def split(asked: Asked, seen: Seen, reads: Mapping[str, Read]) -> Slab:
    """The rows of a run split as asked; `reads`: what a lens makes of each state."""
    values = seen[asked.target.name]
    reading = _reading(asked, values, seen)

    def groups() -> Iterator[Group]:
        return asked.division.groups(seen)

    plain = measuring.numbers(groups, values, None if reading is None else reading.along)
    found = _with_changes(asked, plain, reads)
    chosen = measuring.largest(found, asked.question.top_k)
    every, dtype = list(groups()), seen.weights.dtype
    return Slab(
        asked=asked,
        values=values,
        numbers=found,
        chosen=chosen,
        groups=every,
        starts=list(accumulate((group.count for group in every), initial=0)),
        vectors=_vectors(asked, groups, chosen, found),
        reading=reading,
        logits=_logits(asked, seen),
        eps=float(np.finfo(dtype).eps),
        allowed=answer.tolerance(found, values, dtype),
    )


def _vectors(
    asked: Asked, groups: measuring.Groups, chosen: Ints, found: Numbers
) -> measuring.Vectors | None:
    """Made where they are shown, or where there is a rest to add up."""
    shown = asked.question.vectors
    if not shown and chosen.shape == found.norm.shape:
        return None
    return measuring.vectors(groups, chosen, found.total.shape, shown)


def _logits(asked: Asked, seen: Seen) -> Array | None:
    direction = asked.question.direction
    return readout.value(direction, seen) if direction and asked.is_logit else None


def _reading(asked: Asked, values: Array, seen: Seen) -> Reading | None:
    direction = asked.question.direction
    if direction is None or asked.lens:
        return None
    if not direction.is_read_out:
        return readout.plain(direction, values)
    return readout.reading(direction, asked.target.norms or (), values, seen)


def _with_changes(asked: Asked, found: Numbers, reads: Mapping[str, Read]) -> Numbers:
    """In a lens each part's `along` is what its step changes the value by."""
    if not asked.lens or asked.question.direction is None:
        return found
    return replace(found, along=lens.changes(_steps(asked), reads))


def _steps(asked: Asked) -> list[str]:
    """The state after each part: by block, the ends of blocks and what follows the last one."""
    names = list(asked.lens)
    if asked.question.by == "sublayer":
        return names
    ends = [at for at, name in enumerate(names) if name.endswith("resid_post")]
    last = ends[-1] if ends else 0
    return [name for at, name in enumerate(names) if at == 0 or at in ends or at > last]
