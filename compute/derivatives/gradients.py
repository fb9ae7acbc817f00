"""The gradient of a number read off a run, with respect to stages; activation · gradient."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compute import derived, stages
from compute.derivatives.pulling import Point, pull_back
from compute.derivatives.routes import route
from compute.measures import Measure
from compute.selection import Scene, Wanted
from compute.types import Array


@dataclass(frozen=True, slots=True, eq=False)
class Gradient:
    """Of one stage, sliced as asked: its values, and ∂ measure / ∂ values."""

    wanted: Wanted
    values: Array
    gradient: Array

    def attribution(self) -> Array:
        """values · gradient, element by element; 0 where the gradient is (a masked score is -inf).

        To first order: how much the measure falls where a value is taken to 0.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(self.gradient == 0.0, self.gradient, self.values * self.gradient)


@dataclass(frozen=True, slots=True)
class Gradients:
    """The number itself, and a Gradient for each stage asked for."""

    value: float
    made: tuple[Gradient, ...]


def gradients(point: Point, scene: Scene, measure: Measure, wanted: Sequence[Wanted]) -> Gradients:
    """The gradients of a measure; of a stage that the measure does not depend on it is 0."""
    names = {each.name for each in wanted}
    way = route(scene, measure.stage, names)
    values = point.run(names | way.needs | {measure.stage})
    measured = values[measure.stage]
    seed = measure.cotangent(measured.shape, measured.dtype)
    found = pull_back(point, way, seed, values)
    totals = {name: cotangent.total() for name, cotangent in found.items()}
    return Gradients(
        measure.of(measured), tuple(_made(each, values[each.name], totals) for each in wanted)
    )


def _made(wanted: Wanted, values: Array, totals: Mapping[str, Array]) -> Gradient:
    gradient = totals.get(wanted.name)
    whole = np.zeros_like(values) if gradient is None else gradient
    axes = stages.find(wanted.name).axes
    values_cut, gradient_cut = (derived.cut(x, axes, wanted.where) for x in (values, whole))
    return Gradient(wanted, values_cut, gradient_cut)
