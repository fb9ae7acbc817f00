"""Operations on rows of numbers, each row by itself."""

import numpy as np

from compute.types import Array


def free(x: Array) -> Array | None:
    """x where its memory may be used again (nobody kept it), else None."""
    flags = x.flags
    return x if flags.writeable and flags.c_contiguous else None


def centre(x: Array) -> Array:
    """x - mean(x): (..., d) -> (..., d), the mean taken over d."""
    return np.subtract(x, np.add.reduce(x, axis=-1, keepdims=True) / x.shape[-1])


def root_mean_square(x: Array, eps: float) -> Array:
    """sqrt(mean(x²) + eps): (..., d) -> (..., 1). Of centred rows it is sqrt(var + eps)."""
    squares = np.vecdot(x, x)[..., None]
    return np.sqrt(squares / x.shape[-1] + eps)


def divide_rows(x: Array, scale: Array) -> Array:
    """x / scale: (..., d), (..., 1) -> (..., d)."""
    return np.divide(x, scale, out=free(x))


def scale_rows(x: Array, gain: Array, bias: Array | None) -> Array:
    """x · gain + bias: (..., d), (d), (d) -> (..., d)."""
    scaled = np.multiply(x, gain, out=free(x))
    return scaled if bias is None else np.add(scaled, bias, out=scaled)


def multiply(x: Array, y: Array) -> Array:
    """x · y, element by element."""
    return np.multiply(x, y, out=free(x))


def linear(x: Array, W: Array, b: Array | None) -> Array:
    """x W + b: (..., i), (i, o), (o) -> (..., o)."""
    product = x @ W
    return product if b is None else np.add(product, b, out=product)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), element by element."""
    return np.reciprocal(np.exp(-x) + np.ones((), x.dtype))
