"""RoPE: pairs of coordinates turned by the angle of their position. RoFormer, 3.4.2."""

import numpy as np

from compute.types import Array


def rotate_half(x: Array, cos: Array, sin: Array) -> Array:
    """RoPE, coordinate i paired with i + r/2: (..., h, n, k), (..., n, r/2) twice -> like x.

    (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin); coordinates from r on pass through.
    """
    half = cos.shape[-1]
    turned = np.array(x)
    x1, x2 = x[..., :half], x[..., half : 2 * half]
    turned[..., :half] = x1 * cos - x2 * sin
    turned[..., half : 2 * half] = x2 * cos + x1 * sin
    return turned


def rotate_interleaved(x: Array, cos: Array, sin: Array) -> Array:
    """RoPE, coordinate 2i paired with 2i + 1; else as `rotate_half`."""
    width = 2 * cos.shape[-1]
    turned = np.array(x)
    x1, x2 = x[..., 0:width:2], x[..., 1:width:2]
    turned[..., 0:width:2] = x1 * cos - x2 * sin
    turned[..., 1:width:2] = x2 * cos + x1 * sin
    return turned
