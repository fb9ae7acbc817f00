"""The operations of a block: pure functions from arrays to arrays, one for each concept.

dtype in = dtype out. An operation may write its result over an operand that nobody kept: the
driver freezes what is kept, so `free(x)` is x itself where its memory may be used again.
"""

from dataclasses import dataclass

import numpy as np

from compute.block_weights import AttentionWeights, CrossWeights
from compute.types import Array, Bools, Ints

_FEW = 16  # experts chosen one by one; more are sorted out
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


def across_heads(x: Array) -> Array:
    """Heads side by side: (..., h, n, k) -> (..., n, h k)."""
    return x.swapaxes(-3, -2).reshape(*x.shape[:-3], x.shape[-2], -1)


def into_heads(x: Array, heads: int) -> Array:
    """(..., n, h k) -> (..., h, n, k), a view."""
    return x.reshape(*x.shape[:-1], heads, -1).swapaxes(-3, -2)


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
        q=into_heads(together[..., :q_end], w.n_heads),
        k=into_heads(together[..., q_end:k_end], w.n_kv_heads),
        v=into_heads(together[..., k_end:], w.n_kv_heads),
    )


def project_queries(C: Array, w: CrossWeights) -> Array:
    """Q = C W_Q + b_Q: (..., n, d) -> (..., h, n, k)."""
    return into_heads(linear(C, w.W_Q, w.b_Q), w.n_heads)


def project_memory(memory: Array, w: CrossWeights) -> tuple[Array, Array]:
    """K, V = memory W_K + b_K, memory W_V + b_V: (..., s, d) -> (..., g, s, k), (..., g, s, v)."""
    together = linear(memory, w.W_KV, w.b_KV)
    k_end = w.n_kv_heads * w.d_head
    keys, values = together[..., :k_end], together[..., k_end:]
    return into_heads(keys, w.n_kv_heads), into_heads(values, w.n_kv_heads)


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


def scores(
    Q: Array,
    K: Array,
    scale: float,
    softcap: float | None = None,
    bias: Array | None = None,
    forbidden: Bools | None = None,
) -> Array:
    """S = mask(cap(scale · Q K^T) + bias): (h n k), (g m k) -> (h n m); forbidden pairs get -inf.

    cap(s) = softcap · tanh(s / softcap). Gemma 2, arXiv:2408.00118, section 2.
    """
    scaled = np.multiply(Q, scale, order="C")  # the queries are scaled: k numbers, not m
    S = dots(scaled, K)
    S = capped(S, softcap, out=S)
    if bias is not None:
        np.add(S, bias, out=S)
    if forbidden is not None:
        np.copyto(S, -np.inf, where=forbidden)
    return S


def capped(x: Array, softcap: float | None, out: Array | None = None) -> Array:
    """softcap · tanh(x / softcap): any shape -> that shape, inside ±softcap; None caps nothing."""
    if softcap is None:
        return x
    bounded = np.tanh(np.divide(x, softcap, out=out), out=out)
    return np.multiply(bounded, softcap, out=bounded)


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


def softmax_with_sinks(S: Array, sinks: Array) -> tuple[Array, Array]:
    """A_nm = exp(S_nm) / (Σ_m exp(S_nm) + exp(sink_h)), and what the sink takes of each row.

    (..., h, n, m), (h) -> (..., h, n, m), (..., h, n): a softmax over the scores and one more logit
    a head, whose weight belongs to no key. gpt-oss, arXiv:2508.10925, section 2.
    """
    sink = sinks[:, None, None]
    top = np.maximum(S.max(axis=-1, keepdims=True), sink)
    A = np.subtract(S, top)
    np.exp(A, out=A)
    rest = np.exp(sink - top)
    total = A.sum(axis=-1, keepdims=True) + rest
    return np.divide(A, total, out=A), (rest / total)[..., 0]


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), element by element."""
    return np.reciprocal(np.exp(-x) + np.ones((), x.dtype))


def largest(x: Array, count: int) -> Ints:
    """The indices of the largest entries, the largest first, of equals the first: (..., e) ->
    (..., c)."""
    if count > _FEW or not np.isfinite(x).all():
        order = np.argsort(-x, axis=-1, kind="stable")
        return np.ascontiguousarray(order[..., :count], np.int64)
    left, found = np.array(x), np.empty((*x.shape[:-1], count), np.int64)
    for choice in range(count):
        found[..., choice] = left.argmax(axis=-1)
        np.put_along_axis(left, found[..., choice, None], -np.inf, axis=-1)
    return found


def softmax_of_chosen(router: Array, experts: Ints) -> Array:
    """The softmax over the chosen logits alone: (..., e), (..., c) -> (..., c)."""
    return softmax(np.take_along_axis(router, experts, axis=-1))


def chosen_of_softmax(router: Array, experts: Ints) -> Array:
    """The softmax over all logits, the chosen ones taken out of it: they sum to less than 1."""
    return np.take_along_axis(softmax(np.array(router)), experts, axis=-1)


def by_expert(x: Array, experts: Ints, W: Array, b: Array | None) -> Array:
    """Each row times its chosen experts' matrices: (..., c, i), (..., c), (e, i, o) -> (..., c, o).

    Rows are gathered for each expert, so that a token costs its chosen experts alone.
    """
    rows, chosen = x.reshape(-1, x.shape[-1]), experts.reshape(-1)
    made = np.empty((len(rows), W.shape[-1]), x.dtype)
    order = np.argsort(chosen, kind="stable")
    for mine in np.split(order, np.flatnonzero(np.diff(chosen[order])) + 1):
        expert = chosen[mine[0]]
        made[mine] = linear(rows[mine], W[expert], None if b is None else b[expert])
    return made.reshape(*x.shape[:-1], W.shape[-1])


def for_each_choice(x: Array, experts: Ints) -> Array:
    """Each row once for each expert chosen for it: (..., n, d), (..., n, c) -> (..., n, c, d)."""
    return np.broadcast_to(x[..., None, :], (*experts.shape, x.shape[-1]))


def weighted_sum(weights: Array, x: Array) -> Array:
    """Σ_c weights_c x_c: (..., n, c), (..., n, c, d) -> (..., n, d)."""
    return np.asarray(np.matmul(weights[..., None, :], x)[..., 0, :])


def join_heads(H: Array, W_O: Array, b_O: Array | None) -> Array:
    """Σ_r H_r W_O^(r) + b_O, concatenated first: (..., h, n, v), (h, v, d) -> (..., n, d)."""
    return linear(across_heads(H), W_O.reshape(-1, W_O.shape[-1]), b_O)
