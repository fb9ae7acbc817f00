"""One traced run: from a config, weights, an input and a selection to the stages asked for."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

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


@dataclass(frozen=True, slots=True)
class Made:
    """A stage of the answer: what was wanted and its values, sliced as asked."""

    wanted: Wanted
    values: Array


@dataclass(frozen=True, slots=True)
class Trace:
    """A finished run: the stages in the order they were computed, and all that was kept whole.

    fully_masked: of each pattern that anything is masked in, by full name, the queries with no
    allowed key, (n) or (b, 1, n). also: the stages kept beside the answer's.
    """

    run: Run
    made: tuple[Made, ...]
    whole: Mapping[str, Array]
    fully_masked: Mapping[str, Bools]
    also: Mapping[str, Array] = field(default_factory=dict)


def trace(run: Run) -> Trace:
    """Run the equations up to the last stage needed; derive and slice what was asked for."""
    waiting = _by_source(run)
    whole: dict[str, Array] = {}
    also: dict[str, Array] = {}
    made: list[Made] = []
    for name, values in _kept(run):
        (whole if name in waiting else also)[name] = values
        for wanted, sources in waiting.get(name, ()):
            if all(source in whole for source in sources):
                made.append(_made(run, wanted, tuple(whole[source] for source in sources)))
    also.update((name, whole[name]) for name in run.also if name in whole)
    whole.update((m.wanted.name, m.values) for m in made if _is_whole_and_derived(m.wanted))
    return Trace(run, tuple(made), whole, masks.without_keys(run.config, run.inputs), also)


def identities_of(traced: Trace) -> list[Identity]:
    """Every identity of the run's config, checked where its stages were kept whole."""
    run = traced.run
    evidence = Evidence(
        config=run.config,
        absence=selection.scene_for(run.config, run.inputs).absence,
        whole=traced.whole,
        sliced=frozenset(wanted.name for wanted in run.selection.wanted if wanted.where),
        patched=frozenset(run.patches),
        weights=run.weights,
        fully_masked=traced.fully_masked,
        check=run.check,
    )
    return list(identities.check(evidence))


def _kept(run: Run) -> Iterator[tuple[str, Array]]:
    equations = driver.checked(model(run.config, run.weights, run.inputs), run.check)
    keep = selection.kept_stages(run.selection, run.config) | run.also
    return driver.stream(equations, keep, run.patches)


def _by_source(run: Run) -> Mapping[str, list[tuple[Wanted, tuple[str, ...]]]]:
    """Primary stage -> the wanted stages made of it, each with all its sources."""
    waiting: dict[str, list[tuple[Wanted, tuple[str, ...]]]] = {}
    for wanted in run.selection.wanted:
        sources = selection.sources(wanted, run.config)
        for source in sources:
            waiting.setdefault(source, []).append((wanted, sources))
    return waiting


def _made(run: Run, wanted: Wanted, sources: tuple[Array, ...]) -> Made:
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


def _is_whole_and_derived(wanted: Wanted) -> bool:
    return wanted.stage.derived and not wanted.where
