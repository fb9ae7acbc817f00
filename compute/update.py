"""What a sublayer adds to the stream, from what it computed, as equations."""

from collections.abc import Callable
from functools import partial

from compute.types import Array, Equations

Update = Callable[[str, str, Array], Equations]
"""(where the raw output is named, the update's name, the raw output) -> what is added."""


def plain(raw_name: str, name: str, raw: Array) -> Equations:
    """Δ = raw: (..., n, d) -> same."""
    return (yield name, raw)


def multiplied(multiplier: float, raw_name: str, name: str, raw: Array) -> Equations:
    """Δ = multiplier · raw: (..., n, d) -> same. Granite's residual multiplier."""
    raw = yield raw_name, raw
    return (yield name, multiplier * raw)


def update_for(multiplier: float) -> Update:
    """The equation of a residual multiplier: 1 leaves the raw output as it is."""
    return plain if multiplier == 1.0 else partial(multiplied, multiplier)
