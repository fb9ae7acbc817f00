"""The numbers of each part: its norm, and what it gives of the state and along a direction.

All in float64. Parts are made twice, a few at a time: once for their numbers, once more for the
vectors of those that are shown and the sum of the rest.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from compute.contributions.parts import Group
from compute.types import Array, Ints

Groups = Callable[[], Iterator[Group]]


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Of P parts at R rows: norm, dot with the state, dot with a direction or None, each (R, P).

    total: the sum of all vectors (R, d). size: how large the terms are whose rounding may be in
    it. width: how many of them a run adds at most in its own dtype.
    """

    norm: Array
    dot: Array
    along: Array | None
    total: Array
    size: float
    width: int


def numbers(groups: Groups, state: Array, along: Array | None) -> Numbers:
    """The numbers of every part: state and along (R, d)."""
    norms, dots, alongs = [], [], []
    total, terms, cancelled, width = np.zeros(state.shape), np.zeros(state.shape), 0.0, 1
    for group in groups():
        cancelled, width = cancelled + group.size(), max(width, group.width)
        for some in group.chunks(*state.shape):
            vectors = group.vectors(some)
            total += vectors.sum(axis=1)
            dots.append(_dots(vectors, state))
            if along is not None:
                alongs.append(_dots(vectors, along))
            norms.append(np.sqrt(np.vecdot(vectors, vectors)))
            terms += np.abs(vectors, out=vectors).sum(axis=1)
    norm = _joined(norms, len(state))
    return Numbers(
        norm=norm,
        dot=_joined(dots, len(state)),
        along=None if along is None else _joined(alongs, len(state)),
        total=total,
        size=float(terms.max(initial=0.0)) + cancelled,
        width=width,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """Of each row the vectors of the parts shown (R, k, d), and the sum of the others (R, d)."""

    shown: Array | None
    rest: Array


def vectors(groups: Groups, chosen: Ints, shape: tuple[int, int], keep: bool) -> Vectors:
    """The vectors of chosen parts (R, k), kept or only left out of the rest: shape (R, d)."""
    shown = np.zeros((*chosen.shape, shape[1])) if keep else None
    rest, start = np.zeros(shape), 0
    for group in groups():
        for some in group.chunks(*shape):
            made = group.vectors(some)
            first = start + some.start
            rows, slots = np.nonzero((chosen >= first) & (chosen < first + made.shape[1]))
            which = chosen[rows, slots] - first
            if shown is not None:
                shown[rows, slots] = made[rows, which]
            made[rows, which] = 0.0
            rest += made.sum(axis=1)
        start += group.count
    return Vectors(shown, rest)


def largest(numbers: Numbers, top_k: int | None) -> Ints:
    """Which parts are shown, (R, k): all in their order, or the largest first.

    Largest by |along| where there is a direction, else by norm.
    """
    rows, parts = numbers.norm.shape
    if top_k is None:
        return np.broadcast_to(np.arange(parts), (rows, parts))
    size = numbers.norm if numbers.along is None else np.abs(numbers.along)
    return np.argsort(-np.nan_to_num(size, nan=np.inf), axis=1, kind="stable")[:, :top_k]


def _dots(vectors: Array, row: Array) -> Array:
    """(R, p, d), (R, d) -> (R, p)."""
    return np.matmul(vectors, row[:, :, None])[:, :, 0]


def _joined(found: list[Array], rows: int) -> Array:
    return np.concatenate(found, axis=1) if found else np.zeros((rows, 0))
