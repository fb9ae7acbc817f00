"""Seeded inputs of a config: rows, positions and masks, with and without a batch axis."""

from typing import Any

import numpy as np

from oracle.functions import Bools, Config, Ints
from oracle.sizes import Rng, Sizes, one_of

Inputs = dict[str, Any]
"""Arrays by keyword, and of what cross-attention reads the same once more: `memory`."""

LARGEST_POSITION = 36  # the shortest table of learned positions has 37 rows


def draw(rng: Rng, config: Config, sizes: Sizes) -> Inputs:
    """`tensor` or `token_ids`, some of the rest, and `memory` where it is read."""
    batch = (sizes.b,) if rng.random() < 0.5 else ()
    inputs = of_stack(rng, config, config["vocab"], (*batch, sizes.n))
    if config.get("cross_attention", False):
        inputs["memory"] = memory(rng, config, (*batch, sizes.s))
    return inputs


def of_stack(rng: Rng, config: Config, vocab: int | None, shape: tuple[int, ...]) -> Inputs:
    """What a stack reads, of the shape (n) or (b, n)."""
    *leading, n = shape
    batch = tuple(leading)
    inputs: Inputs = {}
    if vocab is not None and rng.random() < 0.65:
        inputs["token_ids"] = rng.integers(vocab, size=shape)
    else:
        inputs["tensor"] = rng.standard_normal((*shape, config["d_model"]))
    if rng.random() < 0.6:
        inputs["key_mask"] = key_mask(rng, shared_or(rng, batch), n)
    if rng.random() < 0.45:
        inputs["attention_mask"] = attention_mask(rng, shared_or(rng, batch), n)
    if rng.random() < 0.4:
        inputs["position_ids"] = position_ids(rng, shared_or(rng, batch), n)
    types = config.get("token_types", 0)
    if types and rng.random() < 0.7:
        inputs["token_types"] = rng.integers(types, size=(*shared_or(rng, batch), n))
    return inputs


def memory(rng: Rng, config: Config, shape: tuple[int, ...]) -> Inputs:
    """An encoder's input, or the rows themselves with some of them masked or none."""
    if config.get("encoder") is not None:
        return of_stack(rng, config["encoder"], config["vocab"], shape)
    inputs: Inputs = {"tensor": rng.standard_normal((*shape, config["d_model"]))}
    if rng.random() < 0.6:
        inputs["key_mask"] = key_mask(rng, shared_or(rng, shape[:-1]), shape[-1])
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
