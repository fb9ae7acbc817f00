"""The inverse frequencies of rotary positions, from their published formulas, in float64.

They check what upstream's own functions give under `lifted.lift()`.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Numbers = Mapping[str, float]
Array = NDArray[np.float64]


def inverse_frequencies(rope: Numbers, kind: str, dim: int, longest: int, positions: int) -> Array:
    """(dim / 2,): the angle of one position in each pair of features.

    `longest` is max_position_embeddings; `positions` is one more than the largest position.
    """
    return KINDS[kind](rope, dim, longest, positions)


def plain(theta: float, dim: int) -> Array:
    """theta^(-2i / dim)."""
    return np.array([theta ** (-2 * i / dim) for i in range(dim // 2)])


def sinusoids(positions: int, dim: int) -> Array:
    """(n, d): the sine of p / 10000^(2i / d) at 2i, the cosine at 2i + 1."""
    angles = np.arange(positions)[:, None] * plain(10000.0, dim)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(positions, dim)


def default(rope: Numbers, dim: int, longest: int, positions: int) -> Array:
    """No scaling."""
    return plain(rope["rope_theta"], dim)


def linear(rope: Numbers, dim: int, longest: int, positions: int) -> Array:
    """Every frequency divided by the factor."""
    return plain(rope["rope_theta"], dim) / rope["factor"]


def dynamic(rope: Numbers, dim: int, longest: int, positions: int) -> Array:
    """theta grown by (s n / n₀ - (s - 1))^(dim / (dim - 2)) where n > n₀."""
    ratio = max(positions, longest) / longest
    grown = (rope["factor"] * ratio - (rope["factor"] - 1)) ** (dim / (dim - 2))
    return plain(rope["rope_theta"] * grown, dim)


def llama3(rope: Numbers, dim: int, longest: int, positions: int) -> Array:
    """Short waves kept, long ones divided by the factor, those between mixed."""
    return np.array([llama3_one(rope, f) for f in plain(rope["rope_theta"], dim).tolist()])


def llama3_one(rope: Numbers, frequency: float) -> float:
    """One frequency of `llama3`."""
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    turns = rope["original_max_position_embeddings"] * frequency / (2 * math.pi)
    kept = min(max((turns - low) / (high - low), 0.0), 1.0)
    return (1 - kept) * frequency / rope["factor"] + kept * frequency


def yarn(rope: Numbers, dim: int, longest: int, positions: int) -> Array:
    """A ramp over the pairs from frequencies kept to frequencies divided by the factor."""
    low = max(math.floor(yarn_pair(rope, dim, rope.get("beta_fast", 32))), 0)
    high = min(math.ceil(yarn_pair(rope, dim, rope.get("beta_slow", 1))), dim - 1)
    ramp = np.clip((np.arange(dim // 2) - low) / (high - low), 0, 1)
    kept = plain(rope["rope_theta"], dim)
    return kept / rope["factor"] * ramp + kept * (1 - ramp)


def yarn_pair(rope: Numbers, dim: int, turns: float) -> float:
    """The pair that turns `turns` times over the original length."""
    wave = rope["original_max_position_embeddings"] / (2 * math.pi * turns)
    return dim * math.log(wave) / (2 * math.log(rope["rope_theta"]))


KINDS: dict[str, Callable[[Numbers, int, int, int], Array]] = {
    "default": default,
    "linear": linear,
    "dynamic": dynamic,
    "llama3": llama3,
    "yarn": yarn,
}
