"""Which rows of each stage lie between one position and another.

A state at one position depends on few rows of the stages below it: each operation but attention
reads a row by itself. So a Jacobian of one block costs one row of it for each coordinate, not all.
"""

from collections.abc import Mapping

import numpy as np

from compute import stages
from compute.derivatives.routes import Route
from compute.derivatives.steps import Rows, Step
from compute.selection import Scene
from compute.types import Value

NONE: Rows = range(0)


def active(scene: Scene, way: Route, position: int, source: int) -> Mapping[str, Rows]:
    """Stage -> its rows on which `of` at the position depends and that depend on `by` at the
    source; of any other row nothing comes back."""
    live, reached = _live(scene, way, position), _reached(scene, way, source)
    return {name: _both(rows, reached[name]) for name, rows in live.items()}


def _live(scene: Scene, way: Route, position: int) -> Mapping[str, Rows]:
    """The rows that `of` at a position depends on, from above."""
    (by,) = way.by
    live: dict[str, Rows] = {by: NONE, way.of: range(position, position + 1)}
    for step in reversed(way.steps):
        own = live[step.stage]
        for name in step.reads:
            rows = _keys(scene, step, name, own) if name in step.mixes else own
            live[name] = _hull(live.get(name, NONE), rows)
    on_the_way = {by, *(step.stage for step in way.steps)}
    return {name: live[name] for name in on_the_way}


def _reached(scene: Scene, way: Route, source: int) -> Mapping[str, Rows]:
    """The rows that depend on `by` at a source, from below."""
    (by,) = way.by
    reached: dict[str, Rows] = {by: range(source, source + 1)}
    for step in way.steps:
        for name in step.reads:
            own = reached.get(name, NONE)
            rows = _queries(scene, step, own) if name in step.mixes else own
            reached[step.stage] = _hull(reached.get(step.stage, NONE), rows)
    return reached


def _both(one: Rows, other: Rows) -> Rows:
    return range(max(one.start, other.start), min(one.stop, other.stop)) or NONE


def _hull(one: Rows, other: Rows) -> Rows:
    """Every row of two, and what lies between them."""
    if not (one and other):
        return one or other
    return range(min(one.start, other.start), max(one.stop, other.stop))


def _keys(scene: Scene, step: Step, name: str, queries: Rows) -> Rows:
    """The rows of keys or values that queries may read."""
    if not queries:
        return NONE
    return range(queries.stop if _is_causal(scene, step) else row_count(scene, name))


def _queries(scene: Scene, step: Step, keys: Rows) -> Rows:
    """The rows of queries that may read keys."""
    if not keys:
        return NONE
    return range(keys.start if _is_causal(scene, step) else 0, row_count(scene, step.stage))


def _is_causal(scene: Scene, step: Step) -> bool:
    own = stages.local_name(step.stage).startswith("attn.")
    return own and stages.config_of(step.stage, scene.config).attention.mask == "causal"


def row_count(scene: Scene, name: str) -> int:
    """How many rows a stage has."""
    if name.endswith(".memory"):
        return scene.lengths["s"]
    stage = stages.BY_NAME.get(stages.local_name(name))
    return scene.lengths_of(name)["n" if stage is None else stage.axes[row_axis(name)]]


def row_axis(name: str) -> int:
    """Which axis of a stage its rows are, counted from the last: of queries n, of keys m or s."""
    stage = stages.BY_NAME.get(stages.local_name(name))
    axes = ("n", "d") if stage is None else stage.axes
    return next(at for at in range(-len(axes), 0) if axes[at] in "nms")


def cut(values: Value, name: str, rows: Rows | None) -> Value:
    """A stage's values at some rows, or at all."""
    if rows is None:
        return values
    return values[_at(values, name, rows.start, rows.stop)]


def placed(values: Value, name: str, have: Rows | None, want: Rows | None) -> Value:
    """Values at the rows `have` as values at the rows `want`, 0 at those that were not there."""
    if want is None or have == want:
        return values
    first = 0 if have is None else have.start
    both = want if have is None else _both(have, want)
    there = values[_at(values, name, both.start - first, both.stop - first)]
    if both == want:
        return there
    made = np.zeros(_resized(values.shape, row_axis(name), len(want)), values.dtype)
    made[_at(made, name, both.start - want.start, both.stop - want.start)] = there
    return made


def _at(values: Value, name: str, start: int, stop: int) -> tuple[slice, ...]:
    index = [slice(None)] * values.ndim
    index[row_axis(name)] = slice(start, stop)
    return tuple(index)


def _resized(shape: tuple[int, ...], axis: int, length: int) -> tuple[int, ...]:
    at = axis % len(shape)
    return (*shape[:at], length, *shape[at + 1 :])
