"""Position vectors, rotations and biases, from position ids. Angles are made in float64."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from compute import ops
from compute.config import ModelConfig, PositionConfig
from compute.frequencies import frequencies
from compute.types import Array, DType, Inputs, Ints, QueriesAndKeys
from compute.weights import StackWeights

Pair = Callable[[Array, Array, Array], Array]
Turn = Callable[[Array, Array], QueriesAndKeys]

PAIRINGS: Mapping[str, Pair] = {"half": ops.rotate_half, "interleaved": ops.rotate_interleaved}


def unrotated(Q: Array, K: Array) -> QueriesAndKeys:
    """Q and K as projected: the rotated stages do not exist, so nothing is yielded."""
    return Q, K
    yield  # an equation, though an empty one


def rotated(pair: Pair, cos: Array, sin: Array, Q: Array, K: Array) -> QueriesAndKeys:
    """Q and K turned by their positions: (..., h, n, k), (..., g, m, k) -> same. RoFormer, 3.2.

    cos and sin (..., m, r/2) are of the keys; the queries are the last n of those rows.
    """
    first = K.shape[-2] - Q.shape[-2]
    q_rot = yield "attn.q_rot", pair(Q, cos[..., first:, :], sin[..., first:, :])
    k_rot = yield "attn.k_rot", pair(K, cos, sin)
    return q_rot, k_rot


def ids_for(inputs: Inputs) -> Ints:
    """The position ids given, or 0, 1, 2, … counted from the first key that may be attended.

    So left padding (a run of masked keys in front) does not move the positions of what follows;
    a masked key further on keeps its place. After a past they go on from its largest id. (n) or
    (b, n).
    """
    if inputs.position_ids is not None:
        return inputs.position_ids
    if inputs.past is None:
        return _counted(inputs)
    before = inputs.past.position_ids.max(axis=-1, keepdims=True) + 1
    if inputs.past.key_mask is None:
        return before + np.arange(inputs.positions, dtype=np.int64)
    begun = inputs.past.key_mask.any(axis=-1, keepdims=True)
    return np.where(begun, before + np.arange(inputs.positions, dtype=np.int64), _counted(inputs))


def _counted(inputs: Inputs) -> Ints:
    """0, 1, 2, … from the first of the rows that may be attended, 0 before it: (n) or (b, n)."""
    rows = np.arange(inputs.positions, dtype=np.int64)
    if inputs.key_mask is None:
        return rows
    padding = np.logical_and.accumulate(~inputs.key_mask, axis=-1).sum(axis=-1)
    return np.maximum(rows - padding[..., None], 0)


def key_ids_for(inputs: Inputs) -> Ints:
    """The position ids of the keys: of the past, then of the rows. (m) or (b, m)."""
    own = ids_for(inputs)
    if inputs.past is None:
        return own
    before = inputs.past.position_ids
    batch = np.broadcast_shapes(before.shape[:-1], own.shape[:-1])
    rows = [np.broadcast_to(ids, (*batch, ids.shape[-1])) for ids in (before, own)]
    return np.concatenate(rows, axis=-1)


def sinusoids(position_ids: Ints, d_model: int, dtype: DType) -> Array:
    """PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(same): (..., n) -> (..., n, d).

    Attention Is All You Need, section 3.5. With an odd d the last column is a sine.
    """
    even = np.arange(0, d_model, 2)
    angles = position_ids[..., None] / 10000.0 ** (even / d_model)
    table = np.empty((*position_ids.shape, d_model))
    table[..., 0::2] = np.sin(angles)
    table[..., 1::2] = np.cos(angles[..., : d_model // 2])
    return table.astype(dtype)


def turn_for(position: PositionConfig, position_ids: Ints, dtype: DType) -> Turn:
    """How queries and keys turn at the keys' positions (m): not at all, unless RoPE is on.

    The angles are position · frequency, (m, r/2), or (b, 1, m, r/2) with ids of their own a row.
    """
    if position.kind != "rope":
        return unrotated
    turns = frequencies(position, position_ids)
    angles = position_ids[..., None] * turns.radians[..., None, :]
    if angles.ndim == 3:  # a batch axis: leave room for the heads
        angles = angles[:, None]
    cos, sin = turns.factor * np.cos(angles), turns.factor * np.sin(angles)
    return partial(rotated, PAIRINGS[position.pairing], cos.astype(dtype), sin.astype(dtype))


def alibi_slopes(n_heads: int, rule: str) -> Array:
    """The slope of each head: (h).

    geometric: 2^(-8 (i+1) / h). bloom: the same where h is a power of two; else the slopes of
    the largest power of two c below h, then every other one of 2c (ALiBi, and BLOOM's code).
    """
    power = 1 << (n_heads.bit_length() - 1)
    if rule == "geometric" or power == n_heads:
        return 2.0 ** (-8.0 * np.arange(1, n_heads + 1) / n_heads)
    rest = 2.0 ** (-8.0 * np.arange(1, 2 * (n_heads - power), 2) / (2 * power))
    return np.concatenate([alibi_slopes(power, rule), rest])


def offsets(key_ids: Ints, n: int | None = None) -> Ints:
    """p_m - p_n, the queries being the last n keys, or all: (..., m) -> (..., n, m)."""
    first = 0 if n is None else key_ids.shape[-1] - n
    return key_ids[..., None, :] - key_ids[..., first:, None]


def alibi_bias(config: ModelConfig, key_ids: Ints, n: int | None = None) -> Array:
    """-slope_h |p_m - p_n|, added to scaled scores: (..., m) -> (h, n, m) or (b, h, n, m)."""
    distance = np.abs(offsets(key_ids, n))
    slopes = alibi_slopes(config.attention.n_heads, config.position.alibi_rule)
    return -slopes[:, None, None] * distance[..., None, :, :]


def t5_buckets(position: PositionConfig, key_ids: Ints, n: int | None = None) -> Ints:
    """The bucket of p_m - p_n: (..., n, m). T5, arXiv:1910.10683, section 2.1, and its code.

    Near distances have a bucket each, farther ones share buckets that grow like the logarithm, and
    all from max_distance on share the last. `bidirectional`: half of the buckets are for keys
    behind, half for keys ahead; else all are for keys behind, and a key ahead counts as distance 0.
    The logarithms are rounded to float32 as in the code: a distance on an edge falls as it does
    there.
    """
    offset = offsets(key_ids, n)
    count = position.n_buckets // 2 if position.bidirectional else position.n_buckets
    ahead = np.where(offset > 0, count, 0) if position.bidirectional else 0
    distance = np.abs(offset) if position.bidirectional else np.maximum(-offset, 0)
    exact = count // 2
    far = (np.maximum(distance, exact) / exact).astype(np.float32)
    slope = np.float32(np.log(position.max_distance / exact))
    growth = np.log(far, dtype=np.float64).astype(np.float32) / slope * np.float32(count - exact)
    shared = np.minimum(exact + growth.astype(np.int64), count - 1)
    return ahead + np.where(distance < exact, distance, shared)


def score_bias(config: ModelConfig, key_ids: Ints, n: int, w: StackWeights) -> Array | None:
    """What position adds to scaled scores: (h, n, m) or (b, h, n, m); None where it adds nothing.

    ALiBi: -slope_h |p_m - p_n|. T5: W_rel[bucket(p_m - p_n), h]. The queries are the last n keys.
    """
    if config.position.kind == "alibi":
        return alibi_bias(config, key_ids, n).astype(w.dtype)
    if config.position.kind == "t5_bias":
        return np.moveaxis(w.W_rel[t5_buckets(config.position, key_ids, n)], -1, -3)
    return None
