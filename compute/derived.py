"""Stages computed afterwards from kept ones; never a branch in the maths.

Slices of heads and positions are cut before the products, so a few heads cost a few heads.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from compute import ops
from compute.block_weights import AttentionWeights, CrossWeights
from compute.config import ModelConfig
from compute.stages import Stage
from compute.types import Array

Where = Mapping[str, tuple[int, ...]]
"""Axis letter -> the indices wanted; an axis left out is wanted whole."""

Weights = AttentionWeights | CrossWeights
Derive = Callable[[tuple[Array, ...], Weights, Where], Array]


def operands(stage: Stage, config: ModelConfig) -> tuple[str, ...]:
    """The primary stages a derived one is computed from, for the config of its block.

    Dots are of queries and keys as they meet: rotated, or else normalized, or else as projected.
    """
    if stage.name != "attn.dots":
        return stage.derived_from
    last = "_rot" if config.position.kind == "rope" else ""
    normed = "_norm" if config.attention.qk_norm != "none" else ""
    return tuple(f"{name}{last or normed}" for name in stage.derived_from)


def dots(kept: tuple[Array, ...], w: Weights, where: Where) -> Array:
    """Q K^T, unscaled: (..., h, n, k), (..., g, m, k) -> (..., h, n, m), then cut."""
    queries, keys = kept
    return cut(ops.dots(np.ascontiguousarray(queries), keys), "hnm", where)


def head_out(kept: tuple[Array, ...], w: Weights, where: Where) -> Array:
    """H_r W_O^(r): (..., h, n, v), (h, v, d) -> (..., h, n, d)."""
    (H,) = kept
    H_wanted = cut(H, "hnv", {letter: where[letter] for letter in "bhn" if letter in where})
    columns = {letter: where[letter] for letter in "d" if letter in where}
    if "h" not in where:
        return np.matmul(H_wanted, cut(w.W_O, "hvd", columns))
    made = [
        H_wanted[..., at, :, :] @ cut(w.W_O[head], "vd", columns)  # a view: W_O is not copied
        for at, head in enumerate(where["h"])
    ]
    return np.stack(made, axis=-3)


def source_out(kept: tuple[Array, ...], w: Weights, where: Where) -> Array:
    """a_nm v_m W_O^(r): (..., h, n, m), (..., g, m, v), (h, v, d) -> (..., h, n, m, d)."""
    A, V = kept
    served = w.n_heads // w.n_kv_heads
    A_wanted = cut(A, "hnm", {letter: where[letter] for letter in "bhnm" if letter in where})
    kv_heads = tuple(head // served for head in where.get("h", range(w.n_heads)))
    V_wanted = cut(V, "hmv", {"h": kv_heads, **{x: where[x] for x in "bm" if x in where}})
    W_O = cut(w.W_O, "hvd", {letter: where[letter] for letter in "hd" if letter in where})
    return A_wanted[..., None] * np.matmul(V_wanted, W_O)[..., None, :, :]


DERIVE: Mapping[str, Derive] = {
    "attn.dots": dots,
    "attn.head_out": head_out,
    "attn.source_out": source_out,
    "cross.head_out": head_out,
}


def cut(x: Array, letters: Sequence[str], where: Where) -> Array:
    """The wanted indices of each axis; `letters` names x's last axes, `b` leads if there is one.

    The axis of which the smallest share is wanted is cut first: each cut copies what it leaves.
    """
    named = ("b", *letters) if x.ndim > len(letters) else letters
    axes = [(axis, letter) for axis, letter in enumerate(named) if letter in where]
    sliced = x
    for axis, letter in sorted(axes, key=lambda at: len(where[at[1]]) / max(1, x.shape[at[0]])):
        sliced = np.take(sliced, np.asarray(where[letter], np.intp), axis=axis)
    return sliced
