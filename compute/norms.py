"""Norms as equations, chosen from a table by name."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from compute import ops
from compute.block_weights import AttentionWeights, NormWeights
from compute.config import ModelConfig
from compute.types import Array, Equations, QueriesAndKeys

Norm = Callable[[str, Array, NormWeights], Equations]
Normalize = Callable[[Array, NormWeights], Array]
QkNorm = Callable[[Array, Array, AttentionWeights], QueriesAndKeys]


def layer_norm(name: str, x: Array, w: NormWeights) -> Equations:
    """(x - mean) / sqrt(var + eps) · gain + bias: (..., d) -> (..., d). Ba et al. 2016, eq. 4."""
    centred = ops.centre(x)
    scale = yield f"{name}.scale", ops.root_mean_square(centred, w.eps)
    normalized = yield f"{name}.normalized", ops.divide_rows(centred, scale)
    return (yield f"{name}.out", ops.scale_rows(normalized, w.gain, w.bias))


def rms_norm(name: str, x: Array, w: NormWeights) -> Equations:
    """x / sqrt(mean(x²) + eps) · gain: (..., d) -> (..., d). Zhang and Sennrich 2019, eq. 4."""
    scale = yield f"{name}.scale", ops.root_mean_square(x, w.eps)
    normalized = yield f"{name}.normalized", x / scale
    return (yield f"{name}.out", ops.scale_rows(normalized, w.gain, w.bias))


def no_norm(name: str, x: Array, w: NormWeights) -> Equations:
    """x itself: the stage does not exist, so nothing is yielded."""
    return x
    yield  # an equation, though an empty one


NORMS: Mapping[str, Norm] = {"layernorm": layer_norm, "rmsnorm": rms_norm, "none": no_norm}


def layer_normalized(x: Array, w: NormWeights) -> Array:
    """A LayerNorm in one step: (..., d) -> (..., d)."""
    centred = ops.centre(x)
    np.divide(centred, ops.root_mean_square(centred, w.eps), out=centred)
    return ops.scale_rows(centred, w.gain, w.bias)


def rms_normalized(x: Array, w: NormWeights) -> Array:
    """An RMSNorm in one step: (..., d) -> (..., d)."""
    return ops.scale_rows(x / ops.root_mean_square(x, w.eps), w.gain, w.bias)


NORMALIZE: Mapping[str, Normalize] = {"layernorm": layer_normalized, "rmsnorm": rms_normalized}


def unnormalized(Q: Array, K: Array, w: AttentionWeights) -> QueriesAndKeys:
    """Q and K as projected: the normalized stages do not exist, so nothing is yielded."""
    return Q, K
    yield  # an equation, though an empty one


def by_head(normalize: Normalize, Q: Array, K: Array, w: AttentionWeights) -> QueriesAndKeys:
    """Each head's query and key normalized over d_head, one gain for all heads. Qwen 3."""
    q_norm = yield "attn.q_norm", normalize(Q, w.q_norm)
    k_norm = yield "attn.k_norm", normalize(K, w.k_norm)
    return q_norm, k_norm


def over_heads(normalize: Normalize, Q: Array, K: Array, w: AttentionWeights) -> QueriesAndKeys:
    """Queries and keys normalized over all heads' coordinates together. OLMo 2."""
    q_norm = yield "attn.q_norm", _together(normalize, Q, w.q_norm)
    k_norm = yield "attn.k_norm", _together(normalize, K, w.k_norm)
    return q_norm, k_norm


def _together(normalize: Normalize, x: Array, w: NormWeights) -> Array:
    flat = NormWeights(
        gain=w.gain.reshape(-1), bias=None if w.bias is None else w.bias.reshape(-1), eps=w.eps
    )
    return ops.into_heads(normalize(ops.across_heads(x), flat), x.shape[-3])


def qk_norm_for(config: ModelConfig) -> QkNorm:
    """How queries and keys are normalized before they meet."""
    if config.attention.qk_norm == "none":
        return unnormalized
    equation = by_head if config.attention.qk_norm == "head" else over_heads
    return partial(equation, NORMALIZE[config.norm.kind])
