"""Which keys each block of query rows may reach, so that what is masked is never computed."""

import sys
from collections.abc import Generator
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from compute.types import Array, Bools, Value

ROWS = 64
"""Query rows of a block at most: few enough to skip most of a causal triangle, enough for a fast
product."""

ALL = slice(0, sys.maxsize)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Query rows and the keys that any of them may attend to.

    forbidden: (n, m) or (b, 1, n, m), the pairs of its rows and the keys `masked` that are not
    allowed; None where all pairs of the block are.
    """

    rows: slice
    keys: slice
    masked: slice
    forbidden: Bools | None = None

    def empty_outside(self, x: Array, nothing: float) -> bool:
        """Whether x (..., n, m) holds nothing else in these rows at the keys out of reach."""
        if self.keys is ALL:
            return True
        before, behind = self._outside(x)
        return bool((before == nothing).all() and (behind == nothing).all())

    def clear_outside(self, x: Array, nothing: float) -> None:
        """Write nothing in these rows of x (..., n, m) at the keys out of reach."""
        if self.keys is not ALL:
            before, behind = self._outside(x)
            before[...] = nothing
            behind[...] = nothing

    def _outside(self, x: Array) -> tuple[Array, Array]:
        rows = x[..., self.rows, :]
        return rows[..., : self.keys.start], rows[..., self.keys.stop :]


Reach = tuple[Block, ...]
"""The blocks of all query rows, in order."""

EVERYTHING: Reach = (Block(ALL, ALL, ALL),)
"""Every query reaches every key."""

Reached = Generator[tuple[str, Value], Value, tuple[Array, Reach]]
"""An equation whose result is a stage's value and what of it is to be read."""


def reach_of(forbidden: Bools | None) -> Reach:
    """The blocks of pairs (n, m) or (b, 1, n, m), true = may not attend; None forbids nothing.

    Few rows are one block of all keys: there skipping saves nothing. A single row that stands for
    all queries is one block too.
    """
    if forbidden is None:
        return EVERYTHING
    rows = forbidden.shape[-2]
    if rows <= ROWS:
        return (Block(ALL, ALL, ALL, forbidden),)
    each = ceil(rows / ceil(rows / ROWS))  # of nearly one size: a row alone is no fast product
    starts = range(0, rows, each)
    return tuple(_block(forbidden, slice(start, min(start + each, rows))) for start in starts)


def _block(forbidden: Bools, rows: slice) -> Block:
    here = forbidden[..., rows, :]
    over = tuple(range(here.ndim - 1))
    keys = _span(~np.asarray(here.all(axis=over)))
    masked = _span(np.asarray(here[..., keys].any(axis=over)), keys.start)
    pairs = here[..., masked]
    return Block(rows, keys, masked, pairs if pairs.any() else None)


def _span(flags: Bools, start: int = 0) -> slice:
    """From the first to the last true flag; the first alone where none is."""
    there = np.flatnonzero(flags)
    first, last = (int(there[0]), int(there[-1])) if there.size else (0, 0)
    return slice(start + first, start + last + 1)


def yielded(name: str, made: Array, reach: Reach, nothing: float) -> Reached:
    """A stage (..., h, n, m) that holds `nothing` out of reach, and the reach of what comes back.

    Where a changed value holds something out of a block's reach, that block is read whole; a change
    within reach leaves the blocks, and so every other bit, as they were.
    """
    sent = yield name, made
    return sent, reach if sent is made else _widened(reach, sent, nothing)


def _widened(reach: Reach, x: Array, nothing: float) -> Reach:
    return tuple(
        block if block.empty_outside(x, nothing) else replace(block, keys=ALL) for block in reach
    )
