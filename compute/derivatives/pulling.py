"""From a later stage to earlier ones: the walk back over the Steps between."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from compute import driver, stages
from compute import model as equations
from compute.config import ModelConfig
from compute.derivatives import rows
from compute.derivatives.routes import Route
from compute.derivatives.steps import Here, Rows, Step
from compute.setting import Setting, settings_for
from compute.types import Array, Inputs, Value
from compute.weights import ModelWeights, StackWeights


@dataclass(frozen=True, eq=False)
class Point:
    """Where a derivative is taken: a model and an input. `check` is called between steps and may
    raise to stop the work."""

    config: ModelConfig
    weights: ModelWeights
    inputs: Inputs
    check: Callable[[], None] = lambda: None

    def run(self, keep: Collection[str]) -> Mapping[str, Value]:
        """The values of stages, by full name."""
        made = equations.model(self.config, self.weights, self.inputs)
        return dict(driver.stream(driver.checked(made, self.check), frozenset(keep)))

    def here(self, step: Step, rows: Rows | None) -> Here:
        """The weights and the setting of a step, for those of its rows."""
        stack, settings = self._encoder if stages.stack_of(step.stage) else self._own
        layer = stages.layer_of(step.stage)
        return Here(self.weights, stack, settings, 0 if layer is None else layer, rows)

    @cached_property
    def _own(self) -> tuple[StackWeights, list[Setting]]:
        return self.weights, list(settings_for(self.config, self.inputs, self.weights))

    @cached_property
    def _encoder(self) -> tuple[StackWeights, list[Setting]]:
        config, stack, memory = self.config.encoder, self.weights.encoder, self.inputs.memory
        assert config and stack and memory  # noqa: S101, PT018 - the step is the encoder's
        return stack, list(settings_for(config, memory, stack))


@dataclass(frozen=True, slots=True, eq=False)
class Cotangent:
    """seeds · plain + rest: what came over additions alone, apart from what came otherwise."""

    seeds: Array
    plain: int = 0
    rest: Array | None = None

    def total(self) -> Array:
        """All of it together."""
        if self.rest is None:
            return self.seeds if self.plain == 1 else self.plain * self.seeds
        return self.plain * self.seeds + self.rest if self.plain else self.rest

    def moved(self, name: str, have: Rows | None, want: Rows | None) -> "Cotangent":
        """The same at other rows of a stage."""
        if have == want:
            return self
        rest = None if self.rest is None else rows.placed(self.rest, name, have, want)
        seeds = rows.placed(self.seeds, name, have, want) if self.plain else self.seeds
        return Cotangent(seeds, self.plain, rest)

    def __add__(self, other: "Cotangent") -> "Cotangent":
        seeds, plain = (self if self.plain else other).seeds, self.plain + other.plain
        if self.rest is None or other.rest is None:
            return Cotangent(seeds, plain, other.rest if self.rest is None else self.rest)
        return Cotangent(seeds, plain, self.rest + other.rest)


def pull_back(
    point: Point,
    way: Route,
    seeds: Array,
    values: Mapping[str, Value],
    at: Mapping[str, Rows] | None = None,
) -> Mapping[str, Cotangent]:
    """The cotangent at each stage of `by` that a cotangent of `of` reaches.

    seeds: in of's shape, or with one axis in front: many cotangents at once. `at`: the rows of each
    stage that matter, of which alone cotangents are held, the seeds too; None: all.
    """
    waiting = {way.of: Cotangent(seeds, plain=1)}
    active = at or {}
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        for step in reversed(way.steps):
            arrived = (
                waiting.get(step.stage) if step.stage in way.by else waiting.pop(step.stage, None)
            )
            if arrived is None or not active.get(step.stage, True):
                continue
            point.check()
            for name, more in _sent(point, step, arrived, values, active):
                waiting[name] = waiting[name] + more if name in waiting else more
    return {name: waiting[name] for name in way.by if name in waiting}


def _sent(
    point: Point,
    step: Step,
    arrived: Cotangent,
    values: Mapping[str, Value],
    active: Mapping[str, Rows],
) -> Iterator[tuple[str, Cotangent]]:
    """What a step sends to each stage it reads, at the rows of that stage that matter."""
    mine = active.get(step.stage)
    for name, more in zip(step.reads, _pulled(point, step, arrived, values, mine), strict=True):
        if not active or active.get(name):
            have = None if name in step.mixes else mine
            yield name, more.moved(name, have, active.get(name))


def _pulled(
    point: Point, step: Step, arrived: Cotangent, values: Mapping[str, Value], mine: Rows | None
) -> Iterator[Cotangent]:
    if step.plain:
        return (arrived for _ in step.reads)
    kept = [
        values[name] if name in step.mixes else rows.cut(values[name], name, mine)
        for name in step.needs
    ]
    pulled = step.pull(arrived.total(), kept, point.here(step, mine))
    return (Cotangent(arrived.seeds, rest=each) for each in pulled)
