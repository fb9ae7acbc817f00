"""A run with its interventions, beside the same run without them, and what they do to measures.

total: everything after a change is computed anew. direct: the updates of later sublayers stay as
they were without the change (compute.effects).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from compute import interventions
from compute.block_weights import frozen
from compute.config import ModelConfig
from compute.driver import Patch
from compute.interventions import effects
from compute.interventions.changing import Change
from compute.measures import Measure
from compute.selection import Selection, scene_for
from compute.trace import Made, Run, Trace, trace
from compute.types import Inputs, Value
from compute.weights import ModelWeights

Path = Literal["total", "direct"]
NOTHING = Selection((), {})


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One of the runs of a question: what it reads, what of it is shown, what else is kept."""

    inputs: Inputs
    selection: Selection
    also: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """A selection of a run, the changes made in it, the inputs of the donors, what is measured.

    clean: the selection is wanted of the run without changes too. path: whether the run that is
    shown with them is the total or the direct one.
    """

    config: ModelConfig
    inputs: Inputs
    selection: Selection
    changes: Sequence[Change]
    donors: Mapping[int, Inputs]
    measures: Sequence[Measure]
    clean: bool
    path: Path

    @property
    def direct(self) -> bool:
        """Whether later updates have to be frozen in some run."""
        return bool(self.changes) and (self.path == "direct" or bool(self.measures))

    @property
    def measured(self) -> frozenset[str]:
        """The stages that are measured."""
        return frozenset(measure.stage for measure in self.measures)

    @property
    def updates(self) -> tuple[str, ...]:
        """The updates that stay as they were in a direct run; none where there is no such run."""
        if not self.direct:
            return ()
        return effects.later_updates(self.changes, scene_for(self.config, self.inputs))

    def of_clean(self) -> Part | None:
        """The run without changes that is needed beside the one that is shown, if any."""
        if not self.changes or not (self.clean or self.direct):
            return None
        shown = self.selection if self.clean else NOTHING
        return Part(self.inputs, shown, self.measured | set(self.updates))

    def of_shown(self) -> Part:
        """The run that is shown."""
        return Part(self.inputs, self.selection, self.measured)

    def of_other(self) -> Part | None:
        """The run along the other path, which is measured and not shown."""
        needed = self.changes and self.measures
        return Part(self.inputs, NOTHING, self.measured) if needed else None

    def of_donors(self) -> Mapping[int, Part]:
        """The runs that bring values."""
        return {
            source: Part(self.donors[source], NOTHING, names)
            for source, names in interventions.needed(self.changes).items()
        }


@dataclass(frozen=True, slots=True)
class Effect:
    """A measure before a change, after all it does, and after its direct effect alone."""

    before: float
    total: float | None
    direct: float | None


@dataclass(frozen=True, slots=True)
class Found:
    """The run without changes (None where it was not to be shown), the one with, the effects."""

    before: Trace | None
    after: Trace
    effects: tuple[Effect, ...]


def answer(question: Question, weights: ModelWeights, check: Callable[[], None]) -> Found:
    """The runs of a question, one after the other: donors, clean, shown, and the other path.

    `check` is called before each stage and may raise to stop the work.
    """

    def run(part: Part, patches: Mapping[str, Patch]) -> Trace:
        return trace(
            Run(
                config=question.config,
                weights=weights,
                inputs=part.inputs,
                selection=part.selection,
                patches=patches,
                check=check,
                also=part.also,
            )
        )

    donors = {source: run(part, {}).also for source, part in question.of_donors().items()}
    of_clean, of_other = question.of_clean(), question.of_other()
    clean = None if of_clean is None else run(of_clean, {})
    patches = _patches(question, donors, clean, check)
    after = run(question.of_shown(), patches[question.path])
    other: Path = "direct" if question.path == "total" else "total"
    beside = None if of_other is None else run(of_other, patches[other])
    return Found(
        before=clean if question.clean else None,
        after=after,
        effects=_effects(question, clean, {question.path: after, other: beside}),
    )


def _effects(
    question: Question, clean: Trace | None, by_path: Mapping[Path, Trace | None]
) -> tuple[Effect, ...]:
    """Each measure of each run; without changes the one run is the one before them."""
    before = clean if question.changes else by_path[question.path]
    after = by_path if question.changes else {}
    return tuple(
        Effect(
            before=_read(measure, before),
            total=_read_if(measure, after.get("total")),
            direct=_read_if(measure, after.get("direct")),
        )
        for measure in question.measures
        if before is not None
    )


def delta(before: Trace, after: Trace) -> tuple[Made, ...]:
    """after - before, stage by stage; 0 where both are the same infinity."""
    pairs = zip(before.made, after.made, strict=True)
    return tuple(Made(b.wanted, frozen(difference(b.values, a.values))) for b, a in pairs)


def difference(before: Value, after: Value) -> Value:
    """after - before in their dtype; two masked scores, both -inf, do not differ."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        made = np.subtract(after, before)
    made[before == after] = 0
    return made


def _patches(
    question: Question,
    donors: Mapping[int, Mapping[str, Value]],
    clean: Trace | None,
    check: Callable[[], None],
) -> Mapping[Path, Mapping[str, Patch]]:
    """Path -> the patches of its run."""
    total = interventions.patches(question.changes, donors, check)
    kept = {} if clean is None else clean.also
    return {"total": total, "direct": {**effects.frozen(question.updates, kept), **total}}


def _read(measure: Measure, traced: Trace) -> float:
    return measure.of(traced.also[measure.stage])


def _read_if(measure: Measure, traced: Trace | None) -> float | None:
    return None if traced is None else _read(measure, traced)
