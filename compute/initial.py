"""Where weights come from when nobody brings them: seeded, identity, zeros.

`seeded` is the same on every platform: integers from a counter, mapped by exact arithmetic.
For element i of a tensor:

    key  = the first 8 bytes, little-endian, of sha256("{seed}/{tensor name}")
    x    = mix(key + (i + 1) · 0x9E3779B97F4A7C15)          (mod 2^64; mix as in SplitMix64)
    bell = (sum of the four 16-bit lanes of x) - 131070     (an integer, mean 0)
    unit = bell / sqrt((2^32 - 1) / 3)                      (standard deviation 1)

    matrix, table: unit / sqrt(fan_in)
    bias:          0.1 · unit
    gain:          (1 - gain_offset) + 0.1 · unit

The products are made in float64 and rounded once to the dtype asked for. A tensor's numbers
depend on the seed, its name and its shape alone, so adding a layer changes no other tensor.
"""

from collections.abc import Callable
from hashlib import sha256
from math import sqrt

import numpy as np

from compute.config import ModelConfig
from compute.tensors import ENCODER, Tensor
from compute.types import Array, DType

Source = Callable[[Tensor], Array]
"""Gives the values of a tensor of the config."""

_GOLDEN = 0x9E3779B97F4A7C15
_UNIT = sqrt((2**32 - 1) / 3)  # the standard deviation of the centred sum of four lanes
_LANES = np.uint64(0x0000FFFF0000FFFF)  # every other one of the four 16-bit lanes
_CHUNK = 1 << 14  # elements whose temporaries stay in the cache
_SPREAD = 0.1
_NO_PLACE = ("pos_embed.W_pos", "type_embed.W_type", "rel_bias.W_rel")


def seeded(
    seed: int, dtype: DType, gain_offset: float, check: Callable[[], None] = lambda: None
) -> Source:
    """Bell-shaped numbers from (seed, name, index); the formula stands above.

    `check` is called now and then and may raise to stop the work.
    """

    def source(tensor: Tensor) -> Array:
        spread = 1 / sqrt(tensor.fan_in) if tensor.role in ("matrix", "table") else _SPREAD
        centre = 1.0 - gain_offset if tensor.role == "gain" else 0.0
        values = np.empty(tensor.size, dtype)
        key = int.from_bytes(sha256(f"{seed}/{tensor.name}".encode()).digest()[:8], "little")
        for start in range(0, tensor.size, _CHUNK):
            check()
            piece = values[start : start + _CHUNK]
            bell = _bell(key, start, piece.size)
            bell *= spread / _UNIT
            bell += centre
            piece[...] = bell
        return values.reshape(tensor.shape)

    return source


def by_stack(config: ModelConfig, make: Callable[[float], Source]) -> Source:
    """A source made for each stack's own gain_offset: the model's, and its encoder's."""
    own, encoder = make(config.norm.gain_offset), (config.encoder or config).norm.gain_offset
    theirs = make(encoder)
    return lambda tensor: (theirs if tensor.name.startswith(ENCODER) else own)(tensor)


def identity(dtype: DType, gain_offset: float) -> Source:
    """Every matrix and table the (rectangular) identity, gains 1, biases 0, no positions or types.

    Heads are concatenated first, so that head r reads and writes its own coordinates:
    W_Q[r, i, j] = 1 where i = r · d_head + j, and likewise W_K, W_V and W_O. Each expert is
    the identity by itself.
    """

    def source(tensor: Tensor) -> Array:
        if tensor.role == "gain":
            return np.full(tensor.shape, 1.0 - gain_offset, dtype)
        if tensor.role == "bias" or tensor.name.endswith(_NO_PLACE):
            return np.zeros(tensor.shape, dtype)
        return _eye(tensor, dtype)

    return source


def zeros(dtype: DType, gain_offset: float) -> Source:
    """Every matrix, table and bias 0, gains 1: blocks that pass the stream on as it is."""

    def source(tensor: Tensor) -> Array:
        return np.full(tensor.shape, 1.0 - gain_offset if tensor.role == "gain" else 0.0, dtype)

    return source


def _eye(tensor: Tensor, dtype: DType) -> Array:
    if len(tensor.shape) == 2:
        return np.eye(*tensor.shape, dtype=dtype)
    heads, rows, columns = tensor.shape
    if tensor.axes[0] == "e":  # each expert by itself
        return np.broadcast_to(np.eye(rows, columns, dtype=dtype), tensor.shape).copy()
    if tensor.axes[1] == "d":  # reads the stream: (h, d, k), side by side (d, h k)
        side_by_side = np.eye(rows, heads * columns, dtype=dtype)
        return side_by_side.reshape(rows, heads, columns).swapaxes(0, 1).copy()
    return np.eye(heads * rows, columns, dtype=dtype).reshape(tensor.shape)


def _bell(key: int, start: int, count: int) -> Array:
    """(count,) centred sums of four 16-bit lanes, exact integers as float64."""
    x = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    x *= np.uint64(_GOLDEN)
    x += np.uint64(key)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x ^= x >> np.uint64(shift)
        x *= np.uint64(factor)
    x ^= x >> np.uint64(31)
    pairs = (x & _LANES) + ((x >> np.uint64(16)) & _LANES)  # two sums, 32 bits apart
    bell = ((pairs + (pairs >> np.uint64(32))) & np.uint64(0xFFFFFFFF)).astype(np.float64)
    bell -= 131070.0
    return bell
