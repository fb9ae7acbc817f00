"""A selection against a model and an input, to be weighed before anything is made."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from compute import cost
from compute.cost import BYTES, Cost
from compute.selection import Scene, Selection
from compute.sizing.tracing.wire_bytes import Text
from compute.types import DType
from service import limits, trace_text
from service.forms.form import PLAIN, Form

_MOST_REMEMBERED = 512
"""Stages, and indices of their slices, of a selection whose figures are remembered."""

_PARTS_AT_ONCE = 2
"""Blocks whose kept stages a stream holds at once, at most."""

_SUMS = 2
"""Float64 sums of updates with which identities go on from block to block."""


@dataclass(frozen=True)
class Work:
    """A selection against a model and an input, to be weighed for an answer in a form.

    streamed: its stages are written as they are computed, and let go. others: the media types
    that the same request may ask for, where more may fit. is_one_of_several: other runs follow it.
    """

    scene: Scene
    selected: Selection
    dtype: DType
    form: Form = PLAIN
    streamed: bool = False
    others: Sequence[str] = ()
    is_one_of_several: bool = False

    @property
    def cost(self) -> Cost:
        """What the run costs."""
        return self._figures.cost

    @property
    def answer_at_most(self) -> int:
        """Bytes of the answer in its own form, at most."""
        return self._figures.answer_at_most

    @cached_property
    def _figures(self) -> "_Figures":
        key = self._key()
        return _figures(self) if key is None else _known_figures(_Alike(key, self))

    def _key(self) -> Hashable | None:
        """What the figures depend on; None of a selection that is too long to be remembered."""
        wanted, scene = self.selected.wanted, self.scene
        if len(wanted) > _MOST_REMEMBERED:
            return None
        wheres = [tuple(each.where.items()) for each in wanted]
        if sum(len(indices) for where in wheres for _, indices in where) > _MOST_REMEMBERED:
            return None
        names = [(each.name, each.summary) for each in wanted]
        return (
            *(scene.key, self.dtype, self.form, *self.selected.absent.items(), *names, *wheres),
        )

    @cached_property
    def beside(self) -> Text:
        """Bytes of JSON of the answer but its tensors."""
        return trace_text.beside(self.scene, self.selected.absent)

    def answer_text(self, form: Form) -> Text:
        """Bytes of the answer in a form, about and at most."""
        wanted = self.selected.wanted
        return trace_text.answer(self.scene, wanted, self.beside, self.dtype, form)

    @cached_property
    def memory_bytes(self) -> int:
        """Memory of the run and its answer, at most."""
        if self.streamed:
            return limits.memory_bytes(self._as_streamed(), self._line_at_most())
        return limits.memory_bytes(self.cost, self.answer_at_most)

    def _as_streamed(self) -> Cost:
        """The cost of a run that keeps two blocks' stages, and sums of the updates in float64."""
        parts = sorted(cost.kept_parts(self.scene, self.selected, self.dtype).values())
        b, n, s = (self.scene.lengths.get(x, 1) for x in "bns")
        sums = _SUMS * BYTES["float64"] * b * max(n, s) * self.scene.config.d_model
        return replace(self.cost, kept_bytes=sum(parts[-_PARTS_AT_ONCE:]) + sums)

    def _line_at_most(self) -> int:
        line = trace_text.longest_line(self.scene, self.selected.wanted, self.dtype, self.form)
        return max(line + self.beside.at_most, limits.LINES_BYTES)


@dataclass(frozen=True, slots=True)
class _Figures:
    cost: Cost
    answer_at_most: int


@dataclass(frozen=True, slots=True)
class _Alike:
    """A work, equal to others with the same figures."""

    key: Hashable
    work: Work = field(compare=False)


def _figures(work: Work) -> _Figures:
    scene, wanted, dtype = work.scene, work.selected.wanted, work.dtype
    return _Figures(
        cost=cost.estimate(scene, work.selected, dtype),
        answer_at_most=trace_text.at_most(scene, wanted, work.beside, dtype, work.form),
    )


@lru_cache(maxsize=64)
def _known_figures(alike: _Alike) -> _Figures:
    """The same, remembered: requests of a class are much alike."""
    return _figures(alike.work)
