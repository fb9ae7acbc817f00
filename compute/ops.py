"""The operations of a block: pure functions from arrays to arrays, one for each concept.

dtype in = dtype out. An operation may write its result over an operand that nobody kept: the
driver freezes what is kept, so `free(x)` is x itself where its memory may be used again.
"""

from dataclasses import dataclass

import numpy as np

from compute.types import Array, Bools
from compute.weights import AttentionWeights

_SLAB = 1 << 16  # elements that fit the cache: rows are worked through in slabs of this size


def free(x: Array) -> Array | None:
    """x where its memory may be used again (nobody kept it), else None."""
    return x if x.flags.writeable and x.flags.c_contiguous else None


def centre(x: Array) -> Array:
    """x - mean(x): (..., d) -> (..., d), the mean taken over d."""
    return np.subtract(x, x.mean(axis=-1, keepdims=True))


def root_mean_square(x: Array, eps: float) -> Array:
    """sqrt(mean(x²) + eps): (..., d) -> (..., 1). Of centred rows it is sqrt(var + eps)."""
    squares = np.vecdot(x, x)[..., None]
    return np.sqrt(squares / x.shape[-1] + eps)


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


@dataclass(frozen=True, slots=True)
class Projected:
    """Q (..., h, n, k), K (..., g, m, k), V (..., g, m, v): views of one product."""

    q: Array
    k: Array
    v: Array


def project(U: Array, w: AttentionWeights) -> Projected:
    """Q, K, V = U W_Q + b_Q, U W_K + b_K, U W_V + b_V, as one product: (..., n, d) -> heads."""
    together = linear(U, w.W_QKV, w.b_QKV)
    q_end = w.n_heads * w.d_head
    k_end = q_end + w.n_kv_heads * w.d_head
    return Projected(
        q=_split_heads(together[..., :q_end], w.n_heads),
        k=_split_heads(together[..., q_end:k_end], w.n_kv_heads),
        v=_split_heads(together[..., k_end:], w.n_kv_heads),
    )


def _split_heads(x: Array, heads: int) -> Array:
    """(..., n, h k) -> (..., h, n, k), a view."""
    return x.reshape(*x.shape[:-1], heads, -1).swapaxes(-3, -2)


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


def dots(Q: Array, K: Array) -> Array:
    """Q K^T for each head, heads in groups that share keys: (h n k), (g m k) -> (h n m)."""
    return _by_group(Q, K.swapaxes(-1, -2))


def mix(A: Array, V: Array) -> Array:
    """H = A V for each head, heads in groups that share values: (h n m), (g m v) -> (h n v)."""
    return _by_group(A, V)


def _by_group(x: Array, shared: Array) -> Array:
    """x (..., h, n, i) times shared (..., g, i, j), each used by h/g heads -> (..., h, n, j)."""
    heads, rows, inner = x.shape[-3:]
    groups = shared.shape[-3]
    together = x.reshape(*x.shape[:-3], groups, (heads // groups) * rows, inner)
    product = together @ shared
    return product.reshape(*x.shape[:-1], shared.shape[-1])


def scores(Q: Array, K: Array, scale: float, bias: Array | None, forbidden: Bools | None) -> Array:
    """S = mask(scale · Q K^T + bias): (h n k), (g m k) -> (h n m); forbidden pairs get -inf."""
    scaled = np.multiply(Q, scale, order="C")  # the queries are scaled: k numbers, not m
    S = dots(scaled, K)
    if bias is not None:
        np.add(S, bias, out=S)
    if forbidden is not None:
        np.copyto(S, -np.inf, where=forbidden)
    return S


def softmax(S: Array) -> Array:
    """A = softmax(S) over keys: (..., m) -> (..., m); a row of -inf alone gives zeros."""
    A = np.empty(S.shape, S.dtype) if free(S) is None else S
    sources, results = S.reshape(-1, S.shape[-1]), A.reshape(-1, S.shape[-1])
    step = max(1, _SLAB // S.shape[-1])
    for start in range(0, len(sources), step):
        _softmax_rows(sources[start : start + step], results[start : start + step])
    return A


def _softmax_rows(S: Array, A: Array) -> None:
    top = S.max(axis=-1, keepdims=True)  # max first: exp overflows float32 above 88
    top[top == -np.inf] = 0.0
    np.subtract(S, top, out=A)
    np.exp(A, out=A)
    total = A.sum(axis=-1, keepdims=True)
    total[total == 0.0] = 1.0
    np.divide(A, total, out=A)


def join_heads(H: Array, W_O: Array, b_O: Array | None) -> Array:
    """Σ_r H_r W_O^(r) + b_O, concatenated first: (..., h, n, v), (h, v, d) -> (..., n, d)."""
    beside = H.swapaxes(-3, -2).reshape(*H.shape[:-3], H.shape[-2], -1)
    return linear(beside, W_O.reshape(-1, W_O.shape[-1]), b_O)
