"""Where position enters: ids, sinusoids, rotations, ALiBi, T5's buckets. Literal, float64."""

import math

import numpy as np

from oracle import scaling
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


def rotate(x: Array, position: int, rope: Config, length: int = 1) -> Array:
    """(x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin), pair i at angle p f_i; (k,) -> (k,).

    `length`: how many positions are in use, for what dynamic scaling makes of it.
    """
    rotary_dim, amplitude = rope["rotary_dim"], scaling.amplitude(rope)
    rotated = x.copy()
    for i, frequency in enumerate(scaling.frequencies(rope, length)):
        cos = amplitude * math.cos(position * frequency)
        sin = amplitude * math.sin(position * frequency)
        first, second = paired(rope["pairing"], i, rotary_dim)
        rotated[first] = x[first] * cos - x[second] * sin
        rotated[second] = x[second] * cos + x[first] * sin
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


def t5_bucket(distance: int, position: Config) -> int:
    """The bucket of pos_key - pos_query. Raffel et al. 2020, section 2.1, as their code has it.

    Bidirectional: half of the buckets are for keys ahead. Else keys ahead share bucket 0.
    """
    buckets = position["n_buckets"]
    if not position["bidirectional"]:
        return near_or_far(max(-distance, 0), buckets, position["max_distance"])
    half = buckets // 2
    ahead = half if distance > 0 else 0
    return ahead + near_or_far(abs(distance), half, position["max_distance"])


def near_or_far(distance: int, buckets: int, max_distance: int) -> int:
    """A bucket for each distance below E = buckets // 2, then as many as are left up to
    max_distance: E + floor((buckets - E) log(distance / E) / log(max_distance / E))."""
    exact = buckets // 2
    if distance < exact:
        return distance
    left, bucket = buckets - exact, exact
    while bucket < buckets - 1 and reaches(distance, exact, left, bucket + 1, max_distance):
        bucket += 1
    return bucket


def reaches(distance: int, exact: int, left: int, bucket: int, max_distance: int) -> bool:
    """(distance / E)^left >= (max_distance / E)^(bucket - E), in whole numbers: no log rounds."""
    far = bucket - exact
    return bool(distance**left * exact**far >= max_distance**far * exact**left)
