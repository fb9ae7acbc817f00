"""What a split is made of: groups of parts, their vectors made a few at a time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from compute.types import Array

_SLAB = 1 << 13
"""Numbers of weights that are cast to float64 at once, where no more than that is made."""

_CHUNK = 1 << 18
"""Numbers of parts' vectors that are alive at once: 2 MiB of float64."""

"""What a sublayer's raw output goes through to the stream, linear: (..., R, p, d) -> same."""


@dataclass(frozen=True, slots=True)
class Label:
    """A part's name; `source` is the key position it came from, where it came from one."""

    id: str
    source: int | None = None


def no_size() -> float:
    """The size of terms that are the parts themselves, which cannot cancel in one."""
    return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Parts made alike, at R rows. `label`: (row, which) -> its name.

    `vectors`: the parts of a slice, (R, p, d) in float64, a new array each time. `size`: how
    large the terms are that the parts are sums of, where they may cancel; `width`: how many.
    """

    count: int
    label: Callable[[int, int], Label]
    vectors: Callable[[slice], Array]
    size: Callable[[], float] = no_size
    width: int = 1

    def chunks(self, rows: int, d_model: int) -> Iterator[slice]:
        """Slices of the parts, each of at most `_CHUNK` numbers, or of one part."""
        step = max(1, _CHUNK // max(1, rows * d_model))
        for start in range(0, self.count, step):
            yield slice(start, min(self.count, start + step))


def listed(
    ids: Sequence[str],
    vectors: Callable[[slice], Array],
    size: Callable[[], float] = no_size,
    width: int = 1,
) -> Group:
    """A group of named parts, the same at every row."""
    return Group(
        count=len(ids),
        label=lambda row, at: Label(ids[at]),
        vectors=vectors,
        size=size,
        width=width,
    )


def one(name: str, vector: Array) -> Group:
    """A group of one part: (R, d), or (d) where it is the same at every row of a wider push."""
    whole = vector[:, None, :]
    return listed([name], lambda some: np.array(whole, np.float64))


def product(x: Array, W: Array) -> Array:
    """x W in float64: (..., R, v), (..., v, d) -> (..., R, d).

    W is cast slab by slab, never more of it at once than is made.
    """
    made = np.zeros((*x.shape[:-1], W.shape[-1]))
    row = W[..., :1, :].size
    step = max(1, max(_SLAB, made.size) // max(1, row))
    for start in range(0, W.shape[-2], step):
        some = slice(start, start + step)
        made += x[..., some] @ W[..., some, :].astype(np.float64)
    return made


def largest_column(W: Array) -> float:
    """The largest norm of a column: (..., o) -> a number, without a copy of W."""
    letters = "abc"[: W.ndim - 1]
    squares = np.einsum(f"{letters}d,{letters}d->d", W, W, dtype=np.float64)
    return float(np.sqrt(squares.max(initial=0.0)))


def largest_row(x: Array, axes: int) -> float:
    """The largest norm over the last axes: (R, ...) -> a number."""
    squares = np.square(x.astype(np.float64)).sum(axis=tuple(range(-axes, 0)))
    return float(np.sqrt(squares.max(initial=0.0)))
