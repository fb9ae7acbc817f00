"""Where position enters: ids, sinusoids, rotations, ALiBi slopes. Literal, float64."""

import math

import numpy as np

from oracle.functions import Array, Bools, Config, Ints


def default_ids(key_mask: Bools) -> Ints:
    """Row index minus the number of leading masked keys, at least 0; (n,) -> (n,)."""
    padding = 0
    while padding < len(key_mask) and not key_mask[padding]:
        padding += 1
    return np.array([max(row - padding, 0) for row in range(len(key_mask))])


def sinusoid(position: int, d: int) -> Array:
    """PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(p / 10000^(2i/d)); (d,)."""
    vector = np.zeros(d)
    for column in range(d):
        i = column // 2
        angle = position / 10000.0 ** (2 * i / d)
        vector[column] = math.sin(angle) if column % 2 == 0 else math.cos(angle)
    return vector


def paired(pairing: str, i: int, rotary_dim: int) -> tuple[int, int]:
    """The two coordinates that pair i turns."""
    return (i, i + rotary_dim // 2) if pairing == "half" else (2 * i, 2 * i + 1)


def rotate(x: Array, position: int, rope: Config) -> Array:
    """(x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin), pair i at angle p θ^(-2i/r); (k,) -> (k,)."""
    rotary_dim = rope["rotary_dim"]
    rotated = x.copy()
    for i in range(rotary_dim // 2):
        angle = position * rope["theta"] ** (-2 * i / rotary_dim)
        first, second = paired(rope["pairing"], i, rotary_dim)
        rotated[first] = x[first] * math.cos(angle) - x[second] * math.sin(angle)
        rotated[second] = x[second] * math.cos(angle) + x[first] * math.sin(angle)
    return rotated


def geometric_slopes(h: int) -> list[float]:
    """2^(-8 (i+1) / h) for head i."""
    return [2.0 ** (-8.0 * (i + 1) / h) for i in range(h)]


def bloom_slopes(h: int) -> list[float]:
    """Those of the power of two c below h, then every other one of 2c."""
    c = 1
    while 2 * c <= h:
        c = 2 * c
    return geometric_slopes(c) + geometric_slopes(2 * c)[0::2][: h - c]


def slopes(rule: str, h: int) -> list[float]:
    """ALiBi: how much each head loses for each position of distance."""
    return bloom_slopes(h) if rule == "bloom" else geometric_slopes(h)
