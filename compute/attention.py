"""Attention as an equation: the article's four lines, for all heads at once."""

from math import inf

from compute import ops
from compute.block_weights import AttentionWeights, CrossWeights
from compute.reach import yielded
from compute.setting import Setting
from compute.types import Array, Equations


def attention(U: Array, w: AttentionWeights, setting: Setting) -> Equations:
    """Σ_r H_r W_O^(r) + b_O,  H = A V,  A = softmax(mask(scale · Q K^T)): (..., n, d) -> same.

    Article, "Multi-head: several mixtures, one attention update". Heads in a group share K and V.
    With a past K and V begin with its keys and values: (..., g, m, k), m = c + n.
    """
    projected = ops.project(U, w)
    keys, values = setting.recall(projected.k, projected.v)
    Q = yield "attn.q", projected.q
    K = yield "attn.k", keys
    V = yield "attn.v", values
    Q, K = yield from setting.qk_norm(Q, K, w)
    q, k = yield from setting.turn(Q, K)
    s = setting
    scores = ops.scores(q, k, s.scale, s.softcap, s.bias, s.reach)
    S, reach = yield from yielded("attn.scores", scores, s.reach, -inf)
    A, reach = yield from setting.pattern(S, reach, w)
    H = yield "attn.z", ops.mix(A, V, reach)
    return ops.join_heads(H, w.W_O, w.b_O)


def cross_attention(C: Array, w: CrossWeights, setting: Setting) -> Equations:
    """The same with keys and values from a memory: (..., n, d), memory (..., s, d) -> (..., n, d).

    Attention Is All You Need, section 3.2.3. Nothing is turned or biased by position.
    """
    Q = yield "cross.q", ops.project_queries(C, w)
    keys, values = ops.project_memory(setting.memory, w)
    K = yield "cross.k", keys
    V = yield "cross.v", values
    s = setting
    S = yield "cross.scores", ops.scores(Q, K, s.scale, s.softcap, None, s.memory_reach)
    A = yield "cross.pattern", ops.softmax(S)
    H = yield "cross.z", ops.mix(A, V)
    return ops.join_heads(H, w.W_O, w.b_O)
