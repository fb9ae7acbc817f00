"""The products of a block alone, on arrays made beforehand: what nobody can leave out."""

from collections.abc import Callable

import numpy as np

from benchmarks.sides import kept
from benchmarks.sides.rows import rows
from compute.types import Array


def products(positions: int) -> Callable[[], object]:
    """Q K V, Q K^T, A V, W_O, W_in, W_out of one block, with full attention matrices."""
    d, heads, d_ff = kept.LARGE.d, kept.LARGE.heads, kept.LARGE.d_ff
    x, W_QKV, W_O = rows(positions, d), rows(d, 3 * d), rows(d, d)
    W_in, W_out = rows(d, d_ff), rows(d_ff, d)
    qkv = np.empty((positions, 3 * d), np.float32)
    Q, K, V = (_heads(rows(positions, d), heads) for _ in range(3))
    S = np.empty((heads, positions, positions), np.float32)
    H = np.empty((heads, positions, d // heads), np.float32)
    update, hidden = np.empty_like(x), np.empty((positions, d_ff), np.float32)

    def multiply() -> None:
        np.matmul(x, W_QKV, out=qkv)
        np.matmul(Q, K.swapaxes(-1, -2), out=S)
        np.matmul(S, V, out=H)
        np.matmul(x, W_O, out=update)
        np.matmul(x, W_in, out=hidden)
        np.matmul(hidden, W_out, out=update)

    return multiply


def _heads(x: Array, heads: int) -> Array:
    return np.ascontiguousarray(x.reshape(len(x), heads, -1).swapaxes(0, 1))
