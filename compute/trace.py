"""One traced run: from a config, weights, an input and a selection to the stages asked for."""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from compute import derived, driver, identities, masks, selection, stages
from compute.block_weights import frozen
from compute.config import ModelConfig
from compute.driver import Patch
from compute.identities import Evidence, Identity
from compute.model import model
from compute.selection import Selection, Wanted
from compute.types import Array, Bools, Inputs
from compute.weights import ModelWeights

Waiting = tuple[Wanted, tuple[str, ...]]
"""A stage of the answer and the primary stages it is made of."""


def _never() -> None:
    """The check of a run that nobody stops."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """A run before it is run. `check` is called before each stage and may raise to stop it.

    also: primary stages kept beside those that the selection needs, by full name.
    """

    config: ModelConfig
    weights: ModelWeights
    inputs: Inputs
    selection: Selection
    patches: Mapping[str, Patch] = field(default_factory=dict)
    check: Callable[[], None] = _never
    also: frozenset[str] = frozenset()


class Made(NamedTuple):
    """A stage of the answer: what was wanted and its values, sliced as asked."""

    wanted: Wanted
    values: Array


@dataclass(frozen=True, eq=False)
class Trace:
    """A finished run: the stages in the order they were computed, and all that was kept whole.

    also: the stages kept beside the answer's.
    """

    run: Run
    made: tuple[Made, ...]
    whole: Mapping[str, Array]
    also: Mapping[str, Array] = field(default_factory=dict)

    @cached_property
    def fully_masked(self) -> Mapping[str, Bools]:
        """Of each pattern that a given mask may leave some, by full name, the queries with no
        allowed key, (n) or (b, 1, n)."""
        return masks.without_keys(self.run.config, self.run.inputs)


def trace(run: Run) -> Trace:
    """Run the equations up to the last stage needed; derive and slice what was asked for."""
    waiting = by_source(run)
    whole: dict[str, Array] = {}
    also: dict[str, Array] = {}
    made: list[Made] = []
    for name, values in kept_of(run, waiting.keys() | run.also):
        if name in run.also:
            also[name] = values
        if name in waiting:
            whole[name] = values
        for wanted, sources in waiting.get(name, ()):
            if wanted.name == name and not wanted.where:
                made.append(Made(wanted, values))
            elif all(source in whole for source in sources):
                made.append(made_from(run, wanted, tuple(whole[source] for source in sources)))
                whole |= _whole_if_derived(made[-1])
    return Trace(run, tuple(made), whole, also)


def identities_of(traced: Trace) -> list[Identity]:
    """Every identity of the run's config, checked where its stages were kept whole."""
    return list(identities.check(evidence_of(traced)))


def evidence_of(traced: Trace) -> Evidence:
    """What there is of a run to check its identities with."""
    run = traced.run
    return Evidence(
        config=run.config,
        absence=selection.scene_for(run.config, run.inputs).absence,
        whole=traced.whole,
        sliced=frozenset(wanted.name for wanted in run.selection.wanted if wanted.where),
        patched=frozenset(run.patches),
        weights=run.weights,
        fully_masked=traced.fully_masked,
        check=run.check,
    )


def kept_of(run: Run, keep: AbstractSet[str]) -> Iterator[tuple[str, Array]]:
    """The stages to keep, each as soon as it is computed, up to the last."""
    equations = model(run.config, run.weights, run.inputs)
    return driver.stream(equations, keep, run.patches, run.check)


def by_source(run: Run) -> Mapping[str, list[Waiting]]:
    """Primary stage -> the wanted stages made of it, each with all its sources."""
    waiting: dict[str, list[Waiting]] = {}
    for wanted in run.selection.wanted:
        sources = selection.sources(wanted, run.config)
        for source in sources:
            waiting.setdefault(source, []).append((wanted, sources))
    return waiting


def made_from(run: Run, wanted: Wanted, sources: tuple[Array, ...]) -> Made:
    """A stage of the answer, from the whole stages it is made of."""
    stage = wanted.stage
    if not stage.derived:
        return Made(wanted, frozen(derived.cut(sources[0], stage.axes, wanted.where)))
    with np.errstate(over="ignore", invalid="ignore"):  # as in the driver
        w = _heads_of(wanted.name, run.weights)
        values = derived.DERIVE[stage.name](sources, w, wanted.where)
    return Made(wanted, frozen(values))


def _heads_of(name: str, weights: ModelWeights) -> derived.Weights:
    """The weights of the heads that a derived stage is made of."""
    stack = weights.encoder if stages.stack_of(name) else weights
    assert stack is not None  # noqa: S101 - the selection found the stage
    block = stack.blocks[stages.layer_of(name) or 0]
    return block.cross if stages.local_name(name).startswith("cross.") else block.attention


def _whole_if_derived(made: Made) -> Mapping[str, Array]:
    """A derived stage that was made whole, by its name; nothing else."""
    wanted = made.wanted
    return {} if wanted.where or not wanted.stage.derived else {wanted.name: made.values}
