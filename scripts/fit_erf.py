"""Fit the tables of compute/erf.py and print them with their errors: python scripts/fit_erf.py

Each table is the best approximation of its degrees under its weight, found by Remez' exchange in
40 digits: the error swings between +E and -E once more often than the table has coefficients.
Only the last step rounds, to the dtype the table is used in. Needs mpmath.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from textwrap import fill

import numpy as np
from mpmath import mp
from mpmath import mpf as Real

mp.dps = 40

Function = Callable[[Real], Real]

GRID = 1000  # points on which the extrema of an error are looked for
EXCHANGES = 20


@dataclass(frozen=True)
class Problem:
    """target ≈ P(v)/Q(v) on an interval of x, v = variable(x); the error is divided by weight."""

    name: str
    target: Function
    weight: Function
    variable: Function
    interval: tuple[float, float]
    degrees: tuple[int, int]
    dtype: type[np.float32 | np.float64] = np.float64

    @property
    def extrema(self) -> int:
        """How often the best error reaches its maximum."""
        return sum(self.degrees) + 2

    def nodes(self, count: int) -> list[Real]:
        """`count` points of the interval, dense towards its ends, without 0."""
        low, high = map(Real, self.interval)
        turns = (mp.pi * (count - i - Real(1) / 2) / count for i in range(count))
        return [(low + high + (high - low) * mp.cos(turn)) / 2 for turn in turns]


@dataclass(frozen=True)
class Fit:
    """The coefficients of P and Q, lowest first, Q beginning with 1, and the levelled error."""

    p: list[Real]
    q: list[Real]
    level: Real

    def __call__(self, v: Real) -> Real:
        return horner(self.p, v) / horner(self.q, v)


def horner(coefficients: Sequence[Real], v: Real) -> Real:
    """c₀ + c₁ v + c₂ v² + …"""
    return reduce(lambda rest, c: rest * v + c, reversed(coefficients), Real(0))


def level(problem: Problem, nodes: Sequence[Real], start: Fit) -> Fit:
    """The P/Q whose error at the nodes is +E, -E, +E …: Newton's method, as E multiplies Q."""
    fit = start
    for _ in range(50):
        step = _newton(problem, nodes, fit)
        settled = abs(step.level - fit.level) <= abs(step.level) * Real(10) ** -12
        fit = step
        if settled:
            break
    return fit


def _newton(problem: Problem, nodes: Sequence[Real], last: Fit) -> Fit:
    top, bottom = problem.degrees
    rows, right = [], []
    for i, x in enumerate(nodes):
        v, target, swing = problem.variable(x), problem.target(x), (-1) ** i * problem.weight(x)
        shifted, q_last = target + swing * last.level, horner(last.q, v)
        p_row = [v**j for j in range(top + 1)]
        q_row = [-shifted * v**j for j in range(1, bottom + 1)]
        rows.append([*p_row, *q_row, -swing * q_last])
        right.append(shifted - swing * last.level * q_last)
    solved = list(mp.lu_solve(mp.matrix(rows), mp.matrix(right)))
    return Fit(solved[: top + 1], [Real(1), *solved[top + 1 : -1]], solved[-1])


def remez(problem: Problem) -> Fit:
    """Exchange the nodes for the error's extrema until it is level; ValueError if it never is."""
    grid = problem.nodes(GRID)
    values = [(problem.variable(x), problem.target(x), problem.weight(x)) for x in grid]
    nodes = problem.nodes(problem.extrema)
    fit = Fit([Real(0)], [Real(1)] + [Real(0)] * problem.degrees[1], Real(0))
    for _ in range(EXCHANGES):
        fit = level(problem, nodes, fit)
        errors = [(fit(v) - target) / weight for v, target, weight in values]
        peaks = _strongest(list(_peaks(errors)), errors, problem.extrema)
        nodes = [grid[peak] for peak in peaks]
        if max(map(abs, errors)) <= abs(fit.level) * Real("1.001"):
            return fit
    raise ValueError(f"{problem.name}: no level error after {EXCHANGES} exchanges")


def _peaks(errors: Sequence[Real]) -> Iterator[int]:
    """Where the error is largest, once between two changes of its sign."""
    changes = [i for i in range(1, len(errors)) if errors[i] * errors[i - 1] < 0]
    for start, end in pairwise([0, *changes, len(errors)]):
        yield max(range(start, end), key=lambda i: abs(errors[i]))


def _strongest(peaks: list[int], errors: Sequence[Real], count: int) -> list[int]:
    """Leave out the weaker of the two outermost peaks until `count` are left."""
    while len(peaks) > count:
        peaks = peaks[1:] if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else peaks[:-1]
    return peaks


def _square(x: Real) -> Real:
    return x * x


def _piece(low: float, high: float, degree: int) -> Problem:
    """erfc on a piece, to an absolute error: it is subtracted from 1."""
    centre = Real(low + high) / 2
    return Problem(f"erfc [{low}, {high})", mp.erfc, lambda _: Real(1), lambda x: x - centre,
                   (low, high), (degree, 0))  # fmt: skip


def _half_logit(x: Real) -> Real:
    """atanh(erf(x)), without the cancellation of 1 - erf(x)."""
    return mp.log(mp.erfc(-x) / mp.erfc(x)) / 2


NEAR_ZERO = Problem(
    "erf(x)/x - 1 on [0, 1)",
    target=lambda x: mp.erf(x) / x - 1,
    weight=lambda x: mp.erf(x) / x,
    variable=_square,
    interval=(0.0, 1.0),
    degrees=(12, 0),
)
PIECES = (_piece(1.0, 2.0, 17), _piece(2.0, 3.0, 16), _piece(3.0, 4.5, 18), _piece(4.5, 6.0, 15))
# d erf = (1 - erf²) du: the weight makes E the relative error of tanh(u) as an erf.
FLOAT32 = Problem(
    "atanh(erf(x))/x on [0, 4)",
    target=lambda x: _half_logit(x) / x,
    weight=lambda x: mp.erf(x) / (x * mp.erfc(x) * mp.erfc(-x)),
    variable=_square,
    interval=(0.0, 4.0),
    degrees=(3, 3),
    dtype=np.float32,
)


def tables(problem: Problem, fit: Fit) -> list[list[float]]:
    """P, and Q if it is not 1 (without its leading 1): highest power first, in the dtype."""
    lead = fit.q[-1]
    scaled = [[c / lead for c in reversed(side)] for side in (fit.p, fit.q)]
    kept = [scaled[0], scaled[1][1:]]
    return [[float(str(problem.dtype(mp.nstr(c, 25)))) for c in side] for side in kept if side]


def main() -> None:
    """Print each table as Python source under its name and error."""
    for problem in (NEAR_ZERO, *PIECES, FLOAT32):
        fit = remez(problem)
        print(f"# {problem.name}: error {mp.nstr(abs(fit.level), 2)}")
        for table in tables(problem, fit):
            print(fill(", ".join(map(repr, table)), width=90), end=",\n\n")


if __name__ == "__main__":
    main()
