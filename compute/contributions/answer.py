"""What a split answers at each row: its parts with their numbers, and whether they add up."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from compute.contributions.measuring import Numbers, Vectors
from compute.contributions.parts import Label
from compute.types import Array, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part at one row. What has no vector of the stream (a readout's bias) has `along` alone.

    projection: dot with state / ‖state‖; share: dot with state / ‖state‖²; along: dot with the
    direction; count: how many parts it is, 1 but for the rest.
    """

    id: str
    source: int | None = None
    count: int = 1
    norm: float | None = None
    projection: float | None = None
    cosine: float | None = None
    share: float | None = None
    along: float | None = None
    vector: Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """Whether the parts add up: max |Σ parts - state| <= tolerance; None where not finite."""

    max_abs: float | None
    rel: float | None
    tolerance: float | None
    holds: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Logit:
    """The logit (or difference) as the run has it, before any cap, and the sum of all `along`."""

    value: float
    sum: float
    check: Sum


@dataclass(frozen=True, slots=True)
class Shown:
    """One of a lens' largest logits."""

    token: int
    logit: float
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LensRow:
    """One state read out at one row; `change`: its value less that of the state before."""

    state: str
    value: float | None
    change: float | None
    top: tuple[Shown, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What was split at one row: its norm, its dot with the direction, itself if asked."""

    norm: float
    along: float | None
    vector: Array | None


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """The answer at one row. Where a lens reads a post-norm stack there is no sum and no part."""

    position: int
    batch: int | None
    state: State | None
    parts: tuple[Part, ...]
    sum: Sum | None
    logit: Logit | None
    lens: tuple[LensRow, ...] | None


def tolerance(numbers: Numbers, state: Array, dtype: str) -> float:
    """How far parts and state may be apart, as in the identities of a trace:

    eps · ((8 + sqrt(width)) · size + width / 4 · max |state|), eps that of the run's dtype; and
    as the P parts are added up in float64, P · size · eps of that.
    """
    info, width, parts = np.finfo(dtype), float(numbers.width), numbers.norm.shape[1]
    terms = (8.0 + width**0.5) * numbers.size
    likely = float(info.eps) * (terms + width / 4.0 * float(np.abs(state).max(initial=0.0)))
    added = float(np.finfo(np.float64).eps) * parts * numbers.size
    return likely + added + width * float(info.smallest_subnormal)


def judged(left: Array, right: Array, allowed: float) -> Sum:
    """Σ parts against the state of one row, or numbers against numbers."""
    if not (np.isfinite(left).all() and np.isfinite(right).all() and np.isfinite(allowed)):
        return Sum(max_abs=None, rel=None, tolerance=None, holds=None)
    apart, size = float(np.abs(left - right).max()), float(np.abs(right).max())
    return Sum(
        max_abs=apart,
        rel=apart / size if size else None,
        tolerance=allowed,
        holds=apart <= allowed,
    )


def parts_of(
    row: int,
    labels: Sequence[Label],
    chosen: Ints,
    numbers: Numbers,
    vectors: Vectors | None,
    state: Array,
) -> list[Part]:
    """The parts shown at one row, then the rest as one."""
    length = float(np.linalg.norm(state[row]))
    shown = None if vectors is None else vectors.shown
    made = [
        _part(
            Part(
                id=labels[at].id,
                source=labels[at].source,
                norm=float(numbers.norm[row, which]),
                along=None if numbers.along is None else float(numbers.along[row, which]),
                vector=None if shown is None else shown[row, at],
            ),
            float(numbers.dot[row, which]),
            length,
        )
        for at, which in enumerate(chosen[row])
    ]
    left = numbers.norm.shape[1] - chosen.shape[1]
    return [*made, _rest(row, left, chosen, numbers, vectors, length)] if left else made


def _rest(
    row: int, left: int, chosen: Ints, numbers: Numbers, vectors: Vectors | None, length: float
) -> Part:
    """Everything that is not shown, added up."""
    assert vectors is not None  # noqa: S101 - made where there is a rest
    others = np.ones(numbers.norm.shape[1], np.bool_)
    others[chosen[row]] = False
    along = None if numbers.along is None else float(numbers.along[row][others].sum())
    vector = vectors.rest[row]
    rest = Part(
        id="rest",
        count=left,
        norm=float(np.linalg.norm(vector)),
        along=along,
        vector=None if vectors.shown is None else vector,
    )
    return _part(rest, float(numbers.dot[row][others].sum()), length)


def _part(part: Part, dot: float, length: float) -> Part:
    """The part with what it gives of a state of a length, by its dot product with it."""
    return replace(
        part,
        projection=dot / length if length else None,
        cosine=dot / (length * part.norm) if length and part.norm else None,
        share=dot / length / length if length else None,
    )
