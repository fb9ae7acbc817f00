"""The largest whole number at which a growing function is within a limit, in few looks at it."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

Point = tuple[int, int]


def largest(function: Callable[[int], int], limit: int, most: int) -> int:
    """The largest x of 0 … most with function(x) <= limit, for a function that never falls; 0
    where there is none.

    `low` is known to be within, `high` to be beyond, and they are moved until they are neighbours.
    A guess says where to look next, and nothing else: it is never taken for the answer.
    """
    seen = [(0, function(0)), (most, function(most))]
    if seen[0][1] > limit:
        return 0
    if seen[1][1] <= limit:
        return most
    low, high, step = 0, most, 0
    while high - low > 1:
        at = min(max(_guess(low, high, seen, limit, step), low + 1), high - 1)
        seen = [*seen[-2:], (at, function(at))]
        low, high = (at, high) if seen[-1][1] <= limit else (low, at)
        step += 1
    return low


def _guess(low: int, high: int, seen: Sequence[Point], limit: int, step: int) -> int:
    """Half way, in powers while the ends lie powers apart; where three points are known, twice of
    four times where the curve through them meets the limit, then beside an end."""
    half = (high - low) // 2
    if len(seen) < 3 or (step % 4 == 3 and high > 4 * low + 64):
        return math.isqrt(max(low, 1) * high)
    if step % 4 == 3:
        return high - min(half, 1 << step)
    return low + min(half, 1 << step) if step % 4 == 0 else _meets(seen, limit)


def _meets(seen: Sequence[Point], limit: int) -> int:
    """The x, rounded down, at which a parabola through three points is at the limit; 0: nowhere."""
    (x0, y0), (x1, y1), (x2, y2) = seen
    first, second = Fraction(y1 - y0, x1 - x0), Fraction(y2 - y1, x2 - x1)
    bend = (second - first) / (x2 - x0)
    slope = first - bend * (x0 + x1)
    room = limit - (y0 - x0 * (first - bend * x1))
    inside = slope * slope + 4 * bend * room
    if inside < 0:
        return 0
    below = float(slope) + math.sqrt(inside)
    return int(2 * float(room) / below) if below > 0 else 0
