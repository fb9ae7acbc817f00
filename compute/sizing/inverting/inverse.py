"""Which models of a style hold so many numbers: the nearest of a grid of sizes, counted exactly.

A value grows with d_model and with the blocks. So widths whose range of blocks cannot reach the
target are left out but for the nearest, and of each width the blocks nearest to the target are
solved for, L = (target - start) / step. Nothing is searched block by block.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import nsmallest
from itertools import islice
from types import MappingProxyType
from typing import Literal

from compute.config import ModelConfig
from compute.errors import Fault, QuestionError
from compute.sizing import parameters
from compute.sizing.formats import CacheFormat, Format
from compute.sizing.inverting import inverse_grid, inverse_rule
from compute.sizing.inverting.inverse_grid import Candidate, Grid
from compute.sizing.inverting.inverse_style import Rule
from compute.sizing.memory import kv_cache, weight_bytes
from compute.sizing.operations import flops
from compute.sizing.vocabulary import Conventions, Unit, Workload

Measured = Literal["parameters", "kv_bytes_per_token", "flops_per_token", "weight_bytes"]

UNITS: Mapping[Measured, Unit] = MappingProxyType(
    {
        "parameters": "parameters",
        "kv_bytes_per_token": "bytes",
        "flops_per_token": "FLOP",
        "weight_bytes": "bytes",
    }
)


MOST_COUNTED = 512
"""Sizes that are counted to the unit; the others are known to be farther off."""

MOST_LISTED = 8192
"""Sizes that are compared because rounding may bring them near."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What is to be so much; `format`: how numbers are stored, where bytes are meant."""

    measured: Measured
    value: int
    format: Format

    def numbers(self, config: ModelConfig) -> int:
        """The value; of bytes, the numbers that take them. A polynomial of the sizes."""
        return _NUMBERS[self.measured](config)

    def exact(self, config: ModelConfig) -> int:
        """The value to the unit; of bytes, each tensor to its last whole byte."""
        if self.measured == "weight_bytes":
            return int(weight_bytes.size(config, self.format).total)
        if self.measured == "kv_bytes_per_token":
            return _per_token(config, self.format)
        return self.numbers(config)

    @property
    def scale(self) -> Fraction:
        """Value of one number: 1, or its bytes."""
        return self.format.bits / 8 if UNITS[self.measured] == "bytes" else Fraction(1)


def _per_token(config: ModelConfig, form: Format) -> int:
    return int(kv_cache.size(config, Workload(), CacheFormat(format=form)).per_token.value)


def _flops(config: ModelConfig) -> int:
    """FLOPs of one position that sees itself alone, and of cross-attention one source position."""
    source = 1 if config.cross_attention else 0
    return int(flops.forward(config, Workload(source=source), Conventions()).total)


_NUMBERS: Mapping[Measured, Callable[[ModelConfig], int]] = MappingProxyType(
    {
        "parameters": parameters.count,
        "weight_bytes": parameters.count,
        "kv_bytes_per_token": lambda config: _per_token(config, Format(name="int8")),
        "flops_per_token": _flops,
    }
)


@dataclass(frozen=True, slots=True)
class Hit:
    """A model that was found, and its value to the unit."""

    config: ModelConfig
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The best, nearest first; the nearest at or below the target, and at or above.

    unit: every width of the grid is a multiple of it. widths: how many were looked at. candidates:
    sizes whose value was compared. smallest, largest: the ends of the grid. around: of an empty
    grid, the nearest widths outside its bounds that would be allowed.
    """

    best: Sequence[Hit] = ()
    below: Hit | None = None
    above: Hit | None = None
    unit: int
    widths: int = 0
    candidates: int = 0
    smallest: Hit | None = None
    largest: Hit | None = None
    around: tuple[int | None, int | None] = (None, None)


def find(base: ModelConfig, goal: Goal, rule: Rule, best: int) -> Found:
    """The `best` models of the style of `base` whose value is nearest to the goal's.

    Ordered by |value - target|, then d_model, then the blocks. QuestionError for a rule that the
    style cannot have, for what no model of it has, and for too many widths.
    """
    style = inverse_rule.of(base, rule)
    grid = inverse_grid.of(style, goal.numbers, goal.scale)
    if not grid.widths:
        return Found(unit=style.unit, around=inverse_grid.around(style))
    return _searched(grid, goal, best)


def _searched(grid: Grid, goal: Goal, best: int) -> Found:
    target, slack = goal.value * grid.scale.denominator, grid.slack()
    near = grid.reaching(target, best)
    listed = _listed(grid, target, near, best, slack)
    hits = [_hit(grid, goal, x) for x in _few(_pool(listed, target, best, slack))]
    hits.sort(key=lambda hit: (abs(hit.value - goal.value), *_size(hit)))
    first, last = grid.ends()
    return Found(
        best=hits[:best],
        below=next((hit for hit in hits if hit.value <= goal.value), None),
        above=next((hit for hit in hits if hit.value >= goal.value), None),
        unit=grid.style.unit,
        widths=len(near),
        candidates=len(listed),
        smallest=_hit(grid, goal, first),
        largest=_hit(grid, goal, last),
    )


def _listed(
    grid: Grid, target: int, near: Sequence[int], best: int, slack: int
) -> Sequence[Candidate]:
    """Of each width the nearest of both sides; of the widths that have the best, more of them."""
    pairs = {d: list(grid.nearest(d, target, 1, slack)) for d in near}
    errors = {d: min(abs(x.value - target) for x in pair) for d, pair in pairs.items()}
    worst = nsmallest(best, errors.values())[-1] + 2 * slack
    listed = [found for d, pair in pairs.items() if errors[d] > worst for found in pair]
    for d, error in errors.items():
        if error <= worst:
            listed += grid.nearest(d, target, best, slack)
        if slack and len(listed) > len(pairs) + MOST_LISTED:
            raise _too_many()
    return listed


def _few(pool: Iterator[Candidate]) -> Sequence[Candidate]:
    """Those that are counted exactly; a QuestionError where rounding leaves too many alike."""
    found = list(islice(pool, MOST_COUNTED + 1))
    if len(found) > MOST_COUNTED:
        raise _too_many()
    return found


def _too_many() -> QuestionError:
    detail = "In this format too many sizes are as near as rounding goes: narrow d_model or "
    detail += "aspect, or take a format of whole bytes."
    return QuestionError([Fault(code="too_many_alike", detail=detail, place=("target",))])


def _hit(grid: Grid, goal: Goal, found: Candidate) -> Hit:
    config = grid.style.config(found.d, found.blocks)
    return Hit(config, goal.exact(config))


def _size(hit: Hit) -> tuple[int, int]:
    return hit.config.d_model, hit.config.n_layers


def _pool(listed: Sequence[Candidate], target: int, best: int, slack: int) -> Iterator[Candidate]:
    """Those that are, once tensors are rounded, among the best, or the nearest of their side.

    A value is at most `slack` below what it is rounded up to.
    """
    errors = {x: abs(x.value - target) for x in listed}
    ordered = sorted(listed, key=lambda x: (errors[x], x.d, x.blocks))
    worst = errors[ordered[:best][-1]] + 2 * slack
    below = max((x.value for x in listed if x.value <= target - slack), default=target)
    above = min((x.value for x in listed if x.value >= target), default=target)
    for at, found in enumerate(ordered):
        is_among = at < best or (slack > 0 and errors[found] <= worst)
        if is_among or below - slack <= found.value <= above + slack:
            yield found
