"""Derivatives by differences of runs, with a stage moved: what exact ones are compared with."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from compute import driver, selection, stages
from compute.derivatives.pulling import Point
from compute.model import model
from compute.selection import Scene
from oracle.configs import Case
from runs import run_of_case

Array = npt.NDArray[Any]

STEPS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10)
"""Tried in turn: the first is best where nothing bends much, the last ones where a norm of rows
that are nearly constant bends sharply, or a kink is near."""

NEAR = 1e-7
"""Relative. An extrapolated difference is off by h⁴, its runs by roundings of 1e-16 / h."""

NOISE = 1e-5
"""Of the size of what is differentiated: a derivative far below it is lost in those roundings."""


def point_of(case: Case) -> tuple[Point, Scene]:
    """A case's model and input, and its scene."""
    run = run_of_case(case)
    return Point(run.config, run.weights, run.inputs), selection.scene_for(run.config, run.inputs)


def primary(scene: Scene) -> list[str]:
    """Every stage of a run that is computed in it, in the catalogue's order."""
    return [
        name
        for name, stage in stages.in_order(scene.config)
        if not stage.derived and scene.absence(name) is None
    ]


def moved(point: Point, of: str, by: str, change: Array) -> Array:
    """A stage's values in a run that adds a change to another one's."""
    made = model(point.config, point.weights, point.inputs)
    return dict(driver.stream(made, {of}, {by: lambda values: values + change}))[of]


def derivative(f: Callable[[float], Array], step: float) -> Array:
    """f'(0) by central differences of two widths, extrapolated to none (Richardson)."""
    wide, narrow = (f(h) - f(-h) for h in (step, step / 2))
    return np.asarray((8.0 * narrow - wide) / (6.0 * step))


def apart(exact: Array, f: Callable[[float], Array], size: float) -> float:
    """How far an exact derivative is from the differences that come nearest to it, relative to
    the derivative's largest entry, or to `size` where that is larger.

    A wrong derivative is near to none of them: they differ by their roundings alone.
    """
    best = np.inf
    for step in STEPS:
        found = derivative(f, step)
        largest = max(float(np.abs(exact).max()), float(np.abs(found).max()), size)
        off = float(np.abs(found - exact).max())
        best = min(best, off / largest if largest else off)
        if best <= NEAR:
            break
    return best
