"""Queries that meet keys, and weights that mix values: the products of attention.

Only what a block of query rows reaches is computed; x (..., h, n, m) is nothing elsewhere: -inf in
scores, 0 in weights. Heads in a group share keys and values: g of them serve h heads.
"""

import numpy as np

from compute.reach import ALL, EVERYTHING, Block, Reach
from compute.types import Array


def dots(Q: Array, K: Array) -> Array:
    """Q K^T for each head, heads in groups that share keys: (h n k), (g m k) -> (h n m)."""
    made = np.empty((*Q.shape[:-1], K.shape[-2]), np.result_type(Q, K))
    return _by_group(Q, K.swapaxes(-1, -2), made)


def scores(
    Q: Array,
    K: Array,
    scale: float,
    softcap: float | None = None,
    bias: Array | None = None,
    reach: Reach = EVERYTHING,
) -> Array:
    """S = mask(cap(scale · Q K^T) + bias): (h n k), (g m k) -> (h n m); forbidden pairs get -inf.

    cap(s) = softcap · tanh(s / softcap). Gemma 2, arXiv:2408.00118, section 2.
    """
    scaled = np.multiply(Q, scale, order="C")  # the queries are scaled: k numbers, not m
    keys = K.swapaxes(-1, -2)
    S = np.empty((*Q.shape[:-1], K.shape[-2]), Q.dtype)
    for block in reach:
        here = S[..., block.rows, block.keys]
        _by_group(scaled[..., block.rows, :], keys[..., block.keys], here)
        capped(here, softcap, out=here)
        if bias is not None:
            np.add(here, bias[..., block.rows, block.keys], out=here)
        _forbid(S, block)
    return S


def _forbid(S: Array, block: Block) -> None:
    if block.forbidden is not None:
        rows = S if block.rows is ALL else S[..., block.rows, block.masked]
        np.copyto(rows, -np.inf, where=block.forbidden)
    block.clear_outside(S, -np.inf)


def capped(x: Array, softcap: float | None, out: Array | None = None) -> Array:
    """softcap · tanh(x / softcap): any shape -> that shape, inside ±softcap; None caps nothing."""
    if softcap is None:
        return x
    bounded = np.tanh(np.divide(x, softcap, out=out), out=out)
    return np.multiply(bounded, softcap, out=bounded)


def mix(A: Array, V: Array, reach: Reach = EVERYTHING) -> Array:
    """H = A V for each head, heads in groups that share values: (h n m), (g m v) -> (h n v).

    In memory the heads of a position lie side by side, as their joint product reads them.
    """
    *batch, heads, rows, _ = A.shape
    side_by_side = np.empty((*batch, rows, heads, V.shape[-1]), np.result_type(A, V))
    H = side_by_side.swapaxes(-3, -2)
    for block in reach:
        weights = A[..., block.rows, block.keys]
        _by_group(weights, V[..., block.keys, :], H[..., block.rows, :])
    return H


def _by_group(x: Array, shared: Array, out: Array) -> Array:
    """x (..., h, n, i) times shared (..., g, i, j), each used by h/g heads -> (..., h, n, j)."""
    groups = shared.shape[-3]
    if x.shape[-3] == groups:
        return np.matmul(x, shared, out=out)
    if x.shape[-2] == 1:  # one query a head: the heads of a group are the rows of one product
        np.matmul(_as_rows(x, groups), shared, out=_as_rows(out, groups))
        return out
    np.matmul(_in_groups(x, groups), shared[..., None, :, :], out=_in_groups(out, groups))
    return out


def _as_rows(x: Array, groups: int) -> Array:
    """(..., h, 1, i) -> (..., g, h/g, i), a view."""
    return _in_groups(x, groups)[..., 0, :]


def _in_groups(x: Array, groups: int) -> Array:
    """(..., h, n, i) -> (..., g, h/g, n, i), a view."""
    return x.reshape(*x.shape[:-3], groups, -1, *x.shape[-2:])
