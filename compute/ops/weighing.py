"""From scores to weights: softmax, in slabs that fit the cache."""

from collections.abc import Iterator

import numpy as np

from compute.ops.rows import free
from compute.reach import ALL, EVERYTHING, Block, Reach
from compute.types import Array

_SLAB = 1 << 16  # elements that fit the cache
_LONG = 64


def softmax(S: Array, reach: Reach = EVERYTHING) -> Array:
    """A = softmax(S) over keys: (..., m) -> (..., m); a row of -inf alone gives zeros.

    With a reach S is (..., h, n, m), -inf at the keys that a block of its rows does not reach.
    """
    A = np.empty(S.shape, S.dtype) if free(S) is None else S
    for block in reach:
        for scores, weights in _slabs(S, A, block):
            _softmax_rows(scores, weights)
        block.clear_outside(A, 0.0)
    return A


def _slabs(S: Array, A: Array, block: Block) -> Iterator[tuple[Array, Array]]:
    """A block of scores and the place of their weights, some rows of some heads at a time."""
    scores, weights = _by_head(S, block), _by_head(A, block)
    heads, rows, keys = scores.shape
    if scores.size <= _SLAB:
        yield scores, weights
        return
    some_heads, some_rows = max(1, _SLAB // (rows * keys)), max(1, _SLAB // keys)
    for head in range(0, heads, some_heads):
        for row in range(0, rows, some_rows):
            at = slice(head, head + some_heads), slice(row, row + some_rows)
            yield scores[at], weights[at]


def _by_head(x: Array, block: Block) -> Array:
    """The block of x (..., n, m) with one axis of heads; all rows of all heads are one head's."""
    if block.rows is ALL:
        return x.reshape(1, -1, x.shape[-1])
    return x.reshape(-1, *x.shape[-2:])[:, block.rows, block.keys]


def _softmax_rows(S: Array, A: Array) -> None:
    lowest = np.finfo(
        S.dtype
    ).min  # finite, so that a row of -inf alone stays -inf, and exp gives 0
    # max first: exp overflows float32 above 88
    top = np.maximum.reduce(S, axis=-1, keepdims=True, initial=lowest)
    raised = np.subtract(S, top, out=A if A.flags.c_contiguous else None)
    np.exp(raised, out=raised)
    total = _row_sums(raised)
    np.maximum(total, 1.0, out=total)  # the largest entry adds 1: less is a row without a key
    np.divide(raised, total, out=A)


def _row_sums(x: Array) -> Array:
    """Σ_m x: (h, n, m) -> (h, n, 1); of long rows as a product with ones, twice as fast."""
    if x.shape[-1] < _LONG:
        return np.add.reduce(x, axis=-1, keepdims=True)
    ones = np.ones(x.shape[-1], x.dtype)
    return (x.reshape(-1, x.shape[-1]) @ ones).reshape(*x.shape[:-1], 1)


def softmax_with_sinks(S: Array, sinks: Array, reach: Reach = EVERYTHING) -> tuple[Array, Array]:
    """A_nm = exp(S_nm) / (Σ_m exp(S_nm) + exp(sink_h)), and what the sink takes of each row.

    (..., h, n, m), (h) -> (..., h, n, m), (..., h, n): a softmax over the scores and one more logit
    a head, whose weight belongs to no key. gpt-oss, arXiv:2508.10925, section 2.
    """
    A, share = np.empty(S.shape, S.dtype), np.empty(S.shape[:-1], S.dtype)
    for block in reach:
        scores, weights = S[..., block.rows, block.keys], A[..., block.rows, block.keys]
        share[..., block.rows] = _weigh_with_sinks(scores, sinks[:, None, None], weights)
        block.clear_outside(A, 0.0)
    return A, share


def _weigh_with_sinks(S: Array, sink: Array, A: Array) -> Array:
    """Writes the weights of rows into A; gives the sink's share of each, (..., h, n)."""
    top = np.maximum(S.max(axis=-1, keepdims=True), sink)
    np.subtract(S, top, out=A)
    np.exp(A, out=A)
    rest = np.exp(sink - top)
    total = A.sum(axis=-1, keepdims=True) + rest
    np.divide(A, total, out=A)
    return np.asarray((rest / total)[..., 0])
