"""Queries, keys and values by heads, and heads joined again."""

from typing import NamedTuple

from compute.block_weights import AttentionWeights, CrossWeights
from compute.ops.rows import linear
from compute.types import Array


def across_heads(x: Array) -> Array:
    """Heads side by side: (..., h, n, k) -> (..., n, h k)."""
    return x.swapaxes(-3, -2).reshape(*x.shape[:-3], x.shape[-2], -1)


def into_heads(x: Array, heads: int) -> Array:
    """(..., n, h k) -> (..., h, n, k), a view."""
    return x.reshape(*x.shape[:-1], heads, -1).swapaxes(-3, -2)


class Projected(NamedTuple):
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


def join_heads(H: Array, W_O: Array, b_O: Array | None) -> Array:
    """Σ_r H_r W_O^(r) + b_O, concatenated first: (..., h, n, v), (h, v, d) -> (..., n, d)."""
    return linear(across_heads(H), W_O.reshape(-1, W_O.shape[-1]), b_O)
