"""Capacity: how many positions or sequences a model has room for, beside its weights.

The answer is the largest whole number at which weights + cache + activations + overhead, each by
its exact closed form, are within budget · utilisation. What is kept grows with positions and with
sequences, so that the largest one is found by halving what it lies between.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from compute.config import ModelConfig
from compute.sizing import architecture
from compute.sizing.fitting import occupied, searching
from compute.sizing.fitting.occupied import Held, Room

Capacity = Literal["context", "batch", "fits"]
Limit = Literal["memory", "weights", "positions", "cap"]

MOST = 1 << 40
"""Beyond so many positions or sequences none are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Sequences and positions at the answer; bytes of each part there, and at one more (None: no
    more is looked for, or none was asked for); what stopped it."""

    batch: int
    tokens: int
    parts: Mapping[str, int]
    following: Mapping[str, int] | None
    limit: Limit
    usable: int

    @property
    def total(self) -> int:
        """Bytes of all parts."""
        return sum(self.parts.values())

    @property
    def left(self) -> int:
        """Usable bytes less those; below 0 where they do not fit."""
        return self.usable - self.total

    @property
    def fits(self) -> bool:
        """Whether they are within what is usable."""
        return self.left >= 0

    @property
    def part(self) -> str:
        """The part that one more adds most to; where nothing follows, the largest."""
        grown = {
            name: (self.following[name] - size if self.following else size)
            for name, size in self.parts.items()
        }
        return max(grown, key=lambda name: grown[name])


def context(config: ModelConfig, held: Held, room: Room, batch: int) -> Found:
    """The most positions of each of `batch` sequences."""
    rows = positions(config, held)
    sizes = _sizes(config, held, room, lambda tokens: (batch, tokens))
    most = min(rows, MOST)
    best = searching.largest(lambda x: sum(sizes(x).values()), room.usable, most)
    capped: Limit = "positions" if rows <= MOST else "cap"
    return _found(sizes, room.usable, (batch, best), best, most, capped)


def batch(config: ModelConfig, held: Held, room: Room, tokens: int) -> Found:
    """The most sequences of `tokens` positions."""
    sizes = _sizes(config, held, room, lambda batch: (batch, tokens))
    best = searching.largest(lambda x: sum(sizes(x).values()), room.usable, MOST)
    return _found(sizes, room.usable, (best, tokens), best, MOST, "cap")


def fits(config: ModelConfig, held: Held, room: Room, batch: int, tokens: int) -> Found:
    """So many sequences of so many positions, whether they fit or not."""
    parts = occupied.parts_at(config, held, room, batch, tokens)
    alone = sum(occupied.constant(config, held, room).values()) > room.usable
    return Found(
        batch=batch,
        tokens=tokens,
        parts=parts,
        following=None,
        limit="weights" if alone else "memory",
        usable=room.usable,
    )


def positions(config: ModelConfig, held: Held) -> int:
    """Positions that there are: rows of learned tables, else more than are looked for."""
    stacks = [x for x in architecture.stacks(config) if not x.is_encoder or held.source is None]
    learned = [x.config.position for x in stacks if x.config.position.kind == "learned"]
    return min((x.n_positions for x in learned), default=MOST + 1)


Sizes = Callable[[int], dict[str, int]]


def _sizes(
    config: ModelConfig, held: Held, room: Room, at: Callable[[int], tuple[int, int]]
) -> Sizes:
    constant = occupied.constant(config, held, room)
    return lambda number: {**constant, **occupied.growing(config, held, *at(number))}


def _found(
    sizes: Sizes, usable: int, at: tuple[int, int], best: int, most: int, capped: Limit
) -> Found:
    parts = sizes(best)
    is_capped = best == most
    alone = best == 0 and sum(parts.values()) > usable
    return Found(
        batch=at[0],
        tokens=at[1],
        parts=parts,
        following=None if is_capped or alone else sizes(best + 1),
        limit=capped if is_capped else "weights" if alone else "memory",
        usable=usable,
    )
