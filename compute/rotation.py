"""RoPE by itself: two vectors, turned to each of some positions, and the dot products they make.

RoFormer, arXiv:2104.09864, section 3.2. The angles and the turning are those of the blocks
(`compute.frequencies`, `compute.positions`), in float64. p counts positions, k the coordinates of
a vector, r of which turn, i the pairs from 0 to r/2 - 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import degrees

import numpy as np

from compute import ops
from compute.config import PositionConfig
from compute.frequencies import Turns, frequencies
from compute.positions import Turn, rotated, turn_for
from compute.types import Array, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """A query and a key, (k) each, whose content is the same at every position."""

    query: Array
    key: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Rotation:
    """What turning does: position_ids (p), turns (r/2), queries and keys (p, k) as turned.

    angles = position · frequency, neither reduced to one turn nor rounded to it.
    """

    position_ids: Ints
    turns: Turns
    degrees_per_position: Array
    coordinates: Sequence[tuple[int, int]]
    queries: Array
    keys: Array

    @cached_property
    def angles_radians(self) -> Array:
        """position · radians a position: (p, r/2)."""
        return self.position_ids[:, None] * self.turns.radians

    @cached_property
    def angles_degrees(self) -> Array:
        """position · degrees a position: (p, r/2)."""
        return self.position_ids[:, None] * self.degrees_per_position

    @cached_property
    def wavelengths(self) -> Array:
        """2π / |radians a position|: positions in a whole turn, inf for none; (r/2)."""
        with np.errstate(divide="ignore", over="ignore"):
            return 2 * np.pi / np.abs(self.turns.radians)

    @cached_property
    def relative(self) -> Ints:
        """p_i - p_j: (p, p)."""
        return np.asarray(self.position_ids[:, None] - self.position_ids)

    @cached_property
    def dots(self) -> Array:
        """The query turned to p_i times the key turned to p_j: (p, p).

        R(p_i) q · R(p_j) k = q · R(p_j - p_i) k: it depends on the difference alone.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # the answer says null
            return self.queries @ self.keys.T

    def dots_of_pairs(self, first: int, second: int) -> Array:
        """What each pair of coordinates adds to the dot product of the query at the first position
        and the key at the second: (r/2)."""
        with np.errstate(over="ignore", invalid="ignore"):
            products = self.queries[first] * self.keys[second]
            return products[np.asarray(self.coordinates)].sum(axis=-1)


def aligned(width: int, coordinates: Sequence[tuple[int, int]]) -> Vectors:
    """Query and key (1, 0) in every pair, 0 in coordinates that do not turn: (width) each."""
    unit = np.zeros(width)
    unit[[first for first, _ in coordinates]] = 1.0
    return Vectors(unit, unit)


def pairs(rotary_dim: int, pairing: str) -> list[tuple[int, int]]:
    """The two coordinates of each pair: (i, i + r/2) for half, (2i, 2i + 1) for interleaved."""
    half = rotary_dim // 2
    if pairing == "half":
        return [(i, i + half) for i in range(half)]
    return [(2 * i, 2 * i + 1) for i in range(half)]


def of_pair(
    radians: float, position_ids: Ints, vectors: Vectors | None, *, in_degrees: float | None = None
) -> Rotation:
    """One pair that turns by so many radians a position; `in_degrees` says the same, as given.

    Degrees are kept as they came: 12 positions of 4 degrees are 48 degrees, not 47.99999999999999.
    """
    turns = Turns(np.array([radians]), 1.0)
    angles = position_ids[:, None] * turns.radians
    turn = partial(rotated, ops.rotate_half, np.cos(angles), np.sin(angles))
    found = _turned(turn, turns, position_ids, pairs(2, "half"), vectors or Vectors(_UNIT, _UNIT))
    said = degrees(radians) if in_degrees is None else in_degrees
    return replace(found, degrees_per_position=np.array([said]))


def of_spectrum(
    position: PositionConfig, width: int, position_ids: Ints, vectors: Vectors | None
) -> Rotation:
    """Every pair of a head of a width, as a block turns it on an input with these position ids.

    Under dynamic scaling the largest of them decides the frequencies.
    """
    turns = frequencies(position, position_ids)
    coordinates = pairs(position.rotary_dim, position.pairing)
    turn = turn_for(position, position_ids, "float64")
    return _turned(turn, turns, position_ids, coordinates, vectors or aligned(width, coordinates))


_UNIT = np.array([1.0, 0.0])


def _turned(
    turn: Turn,
    turns: Turns,
    position_ids: Ints,
    coordinates: Sequence[tuple[int, int]],
    vectors: Vectors,
) -> Rotation:
    shape = (1, len(position_ids), len(vectors.query))
    Q, K = np.broadcast_to(vectors.query, shape), np.broadcast_to(vectors.key, shape)
    equations = turn(Q, K)
    with np.errstate(over="ignore", invalid="ignore"):
        _, queries = next(equations)
        _, keys = equations.send(queries)
    equations.close()
    return Rotation(
        position_ids=position_ids,
        turns=turns,
        degrees_per_position=np.degrees(turns.radians),
        coordinates=coordinates,
        queries=np.ascontiguousarray(queries[0]),
        keys=np.ascontiguousarray(keys[0]),
    )
