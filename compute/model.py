"""A stack of blocks, with the embedding below and the readout above."""

from collections.abc import Callable, Mapping

import numpy as np

from compute import ops, positions
from compute.block import BLOCKS, Block
from compute.config import ModelConfig
from compute.driver import prefixed
from compute.norms import NORMS, Norm
from compute.setting import Setting, setting_for
from compute.types import Array, Equations, Inputs, Ints
from compute.weights import ModelWeights

Read = Callable[[ModelWeights, Inputs], Equations]
Place = Callable[[Array, ModelWeights, Ints], Equations]
Unembed = Callable[[Array, ModelWeights], Equations]


def model(config: ModelConfig, w: ModelWeights, inputs: Inputs) -> Equations:
    """The equation of a whole model on an input, its variants looked up once, here."""
    return _model(
        w,
        inputs,
        positions.ids_for(inputs),
        setting_for(config, inputs, w.dtype),
        read=posted if inputs.token_ids is None else embedded,
        place=PLACES[config.position.kind],
        block=BLOCKS[config.norm.placement, _sublayers(config)],
        final_norm=NORMS[config.norm.kind if config.final_norm else "none"],
        unembed=hidden_only if config.vocab is None else unembedded,
    )


def _model(
    w: ModelWeights,
    inputs: Inputs,
    position_ids: Ints,
    setting: Setting,
    *,
    read: Read,
    place: Place,
    block: Block,
    final_norm: Norm,
    unembed: Unembed,
) -> Equations:
    """X^(0) = embedding + positions; X^(l+1) = block_l(X^(l)); logits = LN(X^(N)) W_U + b_U."""
    embedding = yield from read(w, inputs)
    X = yield from place(embedding, w, position_ids)
    stream = yield from stack(X, w, block, setting)
    final = yield from final_norm("final_norm", stream, w.final_norm)
    return (yield from unembed(final, w))


def stack(X: Array, w: ModelWeights, block: Block, setting: Setting) -> Equations:
    """X^(l+1) = block_l(X^(l)) for every block in turn: (..., n, d) -> (..., n, d)."""
    stream = X
    for layer, weights in enumerate(w.blocks):
        stream = yield from prefixed(f"blocks.{layer}.", block(stream, weights, setting))
    return stream


def embedded(w: ModelWeights, inputs: Inputs) -> Equations:
    """W_E[token_ids]: (..., n) -> (..., n, d)."""
    return (yield "embed", w.W_E[inputs.token_ids])


def posted(w: ModelWeights, inputs: Inputs) -> Equations:
    """The posted tensor, in the model's dtype: (..., n, d)."""
    return np.array(inputs.tensor, w.dtype)  # a copy: the posted array stays its owner's
    yield  # an equation, though an empty one


def with_learned(x: Array, w: ModelWeights, position_ids: Ints) -> Equations:
    """x + W_pos[position_ids]: (..., n, d) -> (..., n, d)."""
    pos_embed = yield "pos_embed", np.broadcast_to(w.W_pos[position_ids], x.shape)
    return x + pos_embed


def with_sinusoids(x: Array, w: ModelWeights, position_ids: Ints) -> Equations:
    """x + PE(position_ids): (..., n, d) -> (..., n, d)."""
    table = positions.sinusoids(position_ids, x.shape[-1], w.dtype)
    pos_embed = yield "pos_embed", np.broadcast_to(table, x.shape)
    return x + pos_embed


def without_positions(x: Array, w: ModelWeights, position_ids: Ints) -> Equations:
    """x itself: position enters inside attention, or not at all."""
    return x
    yield  # an equation, though an empty one


def unembedded(x: Array, w: ModelWeights) -> Equations:
    """x W_U + b_U: (..., n, d) -> (..., n, V)."""
    return (yield "logits", ops.linear(x, w.W_U, w.b_U))


def hidden_only(x: Array, w: ModelWeights) -> Equations:
    """x itself: a model without a vocabulary reads nothing out."""
    return x
    yield  # an equation, though an empty one


PLACES: Mapping[str, Place] = {
    "none": without_positions,
    "sinusoidal": with_sinusoids,
    "learned": with_learned,
    "rope": without_positions,
    "alibi": without_positions,
}
"""By `position.kind`: how position joins the stream below the first block."""


def _sublayers(config: ModelConfig) -> str:
    if config.attention.kind == "none":
        return "ffn"
    return "attention" if config.ffn.kind == "none" else "both"
