"""Two runs beside each other: how far apart each stage of both is, and where they part.

Everything is measured in float64, whatever the runs' arithmetic.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from compute import stages
from compute.selection import Scene
from compute.trace import Trace
from compute.types import Bools, Value

_PIECE = 1 << 16  # entries at a time: no float64 copy of a whole stage
NOT_SELECTED = "not selected there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A stage a of one run beside the stage b of another, entry by entry.

    max_abs: max |a - b|, infinite where some entry is not finite and not the same in both. rel:
    max_abs / max |b|. norm_ratio: norm of a / norm of b. Largest entries and norms are over those
    finite in both; a ratio of a zero is nan. apart: entries not finite and not the same.
    """

    name: str
    shape: tuple[int, ...]
    max_abs: float
    rel: float
    norm_ratio: float
    apart: int


@dataclass(frozen=True, slots=True)
class Shapes:
    """A stage of both runs whose shapes differ."""

    name: str
    a: tuple[int, ...]
    b: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The stages of both runs in a's order of computation; and those of one run, with why."""

    differences: Sequence[Difference]
    shapes: Sequence[Shapes]
    only_in_a: Mapping[str, str]
    only_in_b: Mapping[str, str]

    def first_beyond(self, threshold: float) -> str | None:
        """The first stage computed with max |a - b| > threshold; None where there is none."""
        beyond = (one.name for one in self.differences if one.max_abs > threshold)
        return next(beyond, None)


def compare(a: Trace, b: Trace, scene_a: Scene, scene_b: Scene) -> Comparison:
    """Each stage that both traces answered, in the order in which a computed them."""
    of_a, of_b = _answered(a), _answered(b)
    both = [(name, values, of_b[name]) for name, values in of_a.items() if name in of_b]
    return Comparison(
        differences=[difference(n, x, y) for n, x, y in both if x.shape == y.shape],
        shapes=[Shapes(n, x.shape, y.shape) for n, x, y in both if x.shape != y.shape],
        only_in_a={name: why_absent(name, scene_b) for name in of_a if name not in of_b},
        only_in_b={name: why_absent(name, scene_a) for name in of_b if name not in of_a},
    )


def _answered(traced: Trace) -> dict[str, Value]:
    return {made.wanted.name: made.values for made in traced.made}


def why_absent(name: str, scene: Scene) -> str:
    """Why a run has no stage of a full name: the model lacks it, or it was not selected."""
    own = scene.config.encoder if stages.stack_of(name) else scene.config
    if own is None:
        return "the model has no encoder"
    layer = stages.layer_of(name)
    if layer is not None and layer >= own.n_layers:
        blocks = "1 block" if own.n_layers == 1 else f"{own.n_layers} blocks"
        return f"there {'is' if own.n_layers == 1 else 'are'} {blocks}"
    return scene.absence(name) or NOT_SELECTED


def difference(name: str, a: Value, b: Value) -> Difference:
    """How far apart two arrays of one shape are."""
    max_abs, largest, squares_a, squares_b, apart = 0.0, 0.0, 0.0, 0.0, 0
    for x, y in _pieces(a, b):
        finite = np.isfinite(x) & np.isfinite(y)
        apart += int(np.count_nonzero(~(finite | _same(x, y))))
        x_finite, y_finite = np.where(finite, x, 0.0), np.where(finite, y, 0.0)
        with np.errstate(over="ignore"):  # beyond float64: inf, and so null
            max_abs = max(max_abs, float(np.abs(x_finite - y_finite).max(initial=0.0)))
            largest = max(largest, float(np.abs(y_finite).max(initial=0.0)))
            squares_a += float(np.square(x_finite).sum())
            squares_b += float(np.square(y_finite).sum())
    return Difference(
        name=name,
        shape=a.shape,
        max_abs=inf if apart else max_abs,
        rel=_ratio(inf if apart else max_abs, largest),
        norm_ratio=_ratio(sqrt(squares_a), sqrt(squares_b)),
        apart=apart,
    )


def _pieces(a: Value, b: Value) -> Iterator[tuple[Value, Value]]:
    """Both in row order, a piece at a time, in float64."""
    x, y = a.reshape(-1), b.reshape(-1)
    for start in range(0, x.size, _PIECE):
        piece = slice(start, start + _PIECE)
        yield x[piece].astype(np.float64), y[piece].astype(np.float64)


def _same(x: Value, y: Value) -> Bools:
    """Equal, or nan both."""
    same: Bools = (x == y) | (np.isnan(x) & np.isnan(y))
    return same


def _ratio(above: float, below: float) -> float:
    """above / below; nan where below is 0."""
    return above / below if below else float("nan")
