"""Attention as an equation: the article's four lines, for all heads at once."""

from compute import ops
from compute.setting import Setting
from compute.types import Array, Equations
from compute.weights import AttentionWeights


def attention(U: Array, w: AttentionWeights, setting: Setting) -> Equations:
    """Σ_r H_r W_O^(r) + b_O,  H = A V,  A = softmax(mask(scale · Q K^T)): (..., n, d) -> same.

    Article, "Multi-head: several mixtures, one attention update". Heads in a group share K and V.
    """
    projected = ops.project(U, w)
    Q = yield "attn.q", projected.q
    K = yield "attn.k", projected.k
    V = yield "attn.v", projected.v
    q, k = yield from setting.turn(Q, K)
    S = yield "attn.scores", ops.scores(q, k, setting.scale, setting.bias, setting.forbidden)
    A = yield "attn.pattern", ops.softmax(S)
    H = yield "attn.z", ops.mix(A, V)
    return ops.join_heads(H, w.W_O, w.b_O)
