"""The four matrices of a head, as float64, and what a norm in front of them does to them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compute.block_weights import AttentionWeights, BlockWeights, NormWeights
from compute.config import ModelConfig, NormConfig
from compute.errors import Fault, QuestionError
from compute.types import Array
from compute.weights import ModelWeights

Float64 = npt.NDArray[np.float64]

LARGEST = 1e30
"""Scores square products of four matrices: with larger entries they would leave float64's range."""


@dataclass(frozen=True, slots=True, order=True)
class HeadId:
    """A query head of a block."""

    block: int
    head: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Heads:
    """Some query heads of one block, each with the key/value head it reads through.

    W_Q, W_K (a, d, k), W_V (a, d, v), W_O (a, v, d) for a heads; kv_heads (a).
    """

    W_Q: Float64
    W_K: Float64
    W_V: Float64
    W_O: Float64
    kv_heads: tuple[int, ...]


def kv_head_of(head: int, config: ModelConfig) -> int:
    """floor(r / (h / g)): the key/value head that query head r shares with its group."""
    return head // (config.attention.n_heads // config.attention.n_kv_heads)


def heads_of(
    config: ModelConfig, block: BlockWeights, chosen: Sequence[int], *, fold_norm: bool
) -> Heads:
    """The matrices of the chosen query heads of a block; `fold_norm`: with norm1 folded in."""
    w, kv_heads = block.attention, tuple(kv_head_of(head, config) for head in chosen)
    queries, keys, values = _thirds(w)
    folded = folding(config.norm, block.norm1, fold_norm)
    return Heads(
        W_Q=folded(_per_head(queries, w.n_heads, chosen)),
        W_K=folded(_per_head(keys, w.n_kv_heads, kv_heads)),
        W_V=folded(_per_head(values, w.n_kv_heads, kv_heads)),
        W_O=outputs_of(block, chosen),
        kv_heads=kv_heads,
    )


def _thirds(w: AttentionWeights) -> tuple[Array, Array, Array]:
    """W_QKV (d, h k + g k + g v) -> (d, h k), (d, g k), (d, g v)."""
    q_end = w.n_heads * w.d_head
    k_end = q_end + w.n_kv_heads * w.d_head
    return w.W_QKV[:, :q_end], w.W_QKV[:, q_end:k_end], w.W_QKV[:, k_end:]


def _per_head(packed: Array, count: int, chosen: Sequence[int]) -> Float64:
    """(d, count k) -> (a, d, k), the chosen ones."""
    by_head = packed.reshape(packed.shape[0], count, -1)
    return in_range(by_head[:, list(chosen)].swapaxes(0, 1))


def outputs_of(block: BlockWeights, chosen: Sequence[int]) -> Float64:
    """W_O^(r) of the chosen query heads: (a, v, d)."""
    return in_range(block.attention.W_O[list(chosen)])


def in_range(W: Array) -> Float64:
    """The weights as float64, or a QuestionError where one is not finite or far too large."""
    if not (np.abs(W) <= LARGEST).all():
        detail = f"A weight is not finite, or larger than {LARGEST:g}: no score can be computed."
        raise QuestionError([Fault(code="out_of_range", detail=detail, place=("model",))])
    return np.asarray(W, np.float64)


Fold = Callable[[Float64], Float64]


def folding(norm: NormConfig, weights: NormWeights, fold_norm: bool) -> Fold:
    """What folds the norm that stands before a read into the read's matrix.

    U = N(X) is (X C) diag(gain) / scale with C = I - 1 1ᵀ / d for LayerNorm and I for RMSNorm, so
    that U W = X (C diag(gain) W) / scale. The scale depends on the row and is left out; so is the
    bias. A block without a norm before its reads folds nothing.
    """
    if not fold_norm or not reads_normed(norm):
        return _as_it_is
    gain = in_range(weights.gain)[:, None]
    centre = _FOLDS[norm.kind]
    return lambda W: centre(gain * W)


def reads_normed(norm: NormConfig) -> bool:
    """Whether a sublayer reads a normalized stream whose norm is its own."""
    return norm.kind != "none" and norm.placement in ("pre", "sandwich")


def _as_it_is(W: Float64) -> Float64:
    return W


def _centred(W: Float64) -> Float64:
    """C W = W - the mean over its d rows: (..., d, k) -> (..., d, k)."""
    return W - W.mean(axis=-2, keepdims=True)


_FOLDS: Mapping[str, Fold] = {"layernorm": _centred, "rmsnorm": _as_it_is}


def ffn_norm(config: ModelConfig, block: BlockWeights) -> NormWeights:
    """The norm an FFN reads through: norm1 where one norm feeds both sublayers."""
    return block.norm1 if config.norm.shared else block.norm2


def by_block(heads: Sequence[HeadId]) -> Mapping[int, list[int]]:
    """Block -> places in `heads` of its heads, blocks in order."""
    places: dict[int, list[int]] = {}
    for at, head in enumerate(heads):
        places.setdefault(head.block, []).append(at)
    return dict(sorted(places.items()))


def gathered(
    config: ModelConfig,
    weights: ModelWeights,
    heads: Sequence[HeadId],
    places: Sequence[int],
    *,
    fold_norm: bool,
) -> Heads:
    """The matrices of the heads at these places, all of one block."""
    block = weights.blocks[heads[places[0]].block]
    return heads_of(config, block, [heads[at].head for at in places], fold_norm=fold_norm)
