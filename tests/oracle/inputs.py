"""Seeded inputs of a config: rows, positions and masks, with and without a batch axis."""

from typing import Any

import numpy as np
import numpy.typing as npt

from oracle.functions import Bools, Config, Ints
from oracle.sizes import Rng, Sizes, one_of

Inputs = dict[str, npt.NDArray[Any]]

LARGEST_POSITION = 36  # the shortest table of learned positions has 37 rows


def draw(rng: Rng, config: Config, sizes: Sizes) -> Inputs:
    """`tensor` or `token_ids`, and some of `position_ids`, `key_mask`, `attention_mask`."""
    batch = (sizes.b,) if rng.random() < 0.5 else ()
    inputs: Inputs = {}
    if config["vocab"] is not None and rng.random() < 0.65:
        inputs["token_ids"] = rng.integers(config["vocab"], size=(*batch, sizes.n))
    else:
        inputs["tensor"] = rng.standard_normal((*batch, sizes.n, sizes.d))
    if rng.random() < 0.6:
        inputs["key_mask"] = key_mask(rng, shared_or(rng, batch), sizes.n)
    if rng.random() < 0.45:
        inputs["attention_mask"] = attention_mask(rng, shared_or(rng, batch), sizes.n)
    if rng.random() < 0.4:
        inputs["position_ids"] = position_ids(rng, shared_or(rng, batch), sizes.n)
    return inputs


def shared_or(rng: Rng, batch: tuple[int, ...]) -> tuple[int, ...]:
    """The batch axis, or none: then the whole batch shares the value."""
    return batch if rng.random() < 0.65 else ()


def key_mask(rng: Rng, batch: tuple[int, ...], n: int) -> Bools:
    """Padding on the left of its own length for each element, holes, both, or no key at all."""
    kind = one_of(rng, ("padding", "padding", "holes", "both", "nothing"))
    padding = rng.integers(1, 2 + n // 2, size=(*batch, 1))
    after_padding = np.broadcast_to(np.arange(n), (*batch, n)) >= padding
    without_holes = rng.random((*batch, n)) < 0.7
    if kind == "padding":
        return after_padding
    if kind == "holes":
        return without_holes
    if kind == "both":
        return after_padding & without_holes
    return without_holes & (rng.random((*batch, 1)) < 0.5)


def attention_mask(rng: Rng, batch: tuple[int, ...], n: int) -> Bools:
    """Pairs at random; half of the time with some rows that have no key."""
    mask = rng.random((*batch, n, n)) < 0.7
    if rng.random() < 0.5:
        mask &= rng.random((*batch, n, 1)) < 0.7
    return mask


def position_ids(rng: Rng, batch: tuple[int, ...], n: int) -> Ints:
    """Rows shifted alike, or each anywhere: out of order, some of them equal."""
    if rng.random() < 0.5:
        start = rng.integers(LARGEST_POSITION - n + 1, size=(*batch, 1))
        return np.asarray(start + np.arange(n))
    return rng.integers(LARGEST_POSITION + 1, size=(*batch, n))
