"""A stack of blocks, with the embedding below and the readout above; and an encoder beside it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np

from compute import ops, positions
from compute.activations import activate
from compute.block import Block, block_for
from compute.config import ModelConfig, reads_out
from compute.driver import prefixed
from compute.norms import NORMS, Norm
from compute.setting import settings_for
from compute.tensors import ENCODER
from compute.types import Array, Equations, Inputs, Ints
from compute.weights import ModelWeights, StackWeights

Read = Callable[[ModelWeights, Inputs], Equations]
Place = Callable[[Array, StackWeights, Ints], Equations]
Mark = Callable[[Array, StackWeights, Inputs], Equations]
Remember = Callable[[ModelWeights, Inputs], Equations]
Head = Callable[[Array, ModelWeights], Equations]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A stack's equations, looked up once for a config and a kind of input."""

    config: ModelConfig
    read: Read
    place: Place
    mark: Mark
    embed_norm: Norm
    block: Block
    final_norm: Norm


def model(config: ModelConfig, w: ModelWeights, inputs: Inputs) -> Equations:
    """The equation of a whole model on an input, its variants looked up once, here."""
    return _model(
        w,
        inputs,
        parts=parts_for(config, inputs),
        remember=memory_for(config, inputs),
        read_out=read_out_for(config),
    )


def resumed(
    config: ModelConfig, w: ModelWeights, inputs: Inputs, first: int, X: Array, memory: Array
) -> Equations:
    """The equation of a model from the resid_pre X of block `first` on, given the memory."""
    parts, read_out = parts_for(config, inputs), read_out_for(config)
    final = yield from blocks_from(first, parts, w, inputs, X, memory)
    return (yield from read_out(final, w))


def _model(
    w: ModelWeights,
    inputs: Inputs,
    *,
    parts: Parts,
    remember: Remember,
    read_out: Head,
) -> Equations:
    """logits = head(stack(input, memory)) W_U + b_U; the memory is there before the stack."""
    memory = yield from remember(w, inputs)
    final = yield from stack(parts, w, w, inputs, memory)
    return (yield from read_out(final, w))


def read_out_for(config: ModelConfig) -> Head:
    """What stands above the final norm: a head, a readout, both or nothing."""
    head = partial(mlm_head, config) if config.mlm_head else no_head
    unembed = partial(unembedded, config) if reads_out(config) else hidden_only
    return partial(read_by, head, unembed)


def read_by(head: Head, unembed: Head, x: Array, w: ModelWeights) -> Equations:
    """unembed(head(x)): (..., n, d) -> (..., n, V), or (..., n, d) where nothing is read out."""
    read = yield from head(x, w)
    return (yield from unembed(read, w))


def parts_for(config: ModelConfig, inputs: Inputs) -> Parts:
    """The equations of one stack."""
    return Parts(
        config=config,
        read=posted if inputs.token_ids is None else partial(embedded, config.embed_multiplier),
        place=PLACES[config.position.kind],
        mark=with_types if config.token_types else without_types,
        embed_norm=NORMS[config.norm.kind if config.embed_norm else "none"],
        block=block_for(config),
        final_norm=NORMS[config.norm.kind if config.final_norm else "none"],
    )


def stack(
    parts: Parts, w: ModelWeights, own: StackWeights, inputs: Inputs, memory: Array
) -> Equations:
    """X^(0) = LN(embedding + positions + types); X^(l+1) = block_l(X^(l)); LN(X^(N)).

    (..., n) or (..., n, d) -> (..., n, d). `w` has the embedding, `own` is the stack's.
    """
    embedding = yield from parts.read(w, inputs)
    placed = yield from parts.place(embedding, own, positions.ids_for(inputs))
    marked = yield from parts.mark(placed, own, inputs)
    stream = yield from parts.embed_norm("embed_norm", marked, own.embed_norm)
    return (yield from blocks_from(0, parts, own, inputs, stream, memory))


def blocks_from(
    first: int, parts: Parts, own: StackWeights, inputs: Inputs, X: Array, memory: Array
) -> Equations:
    """X^(l+1) = block_l(X^(l)) from l = first on; LN(X^(N)): X^(first) (..., n, d) -> same."""
    stream = X
    settings = settings_for(parts.config, inputs, own, memory)
    for layer, setting in islice(enumerate(settings), first, None):
        block = parts.block(stream, own.blocks[layer], setting)
        stream = yield from prefixed(f"blocks.{layer}.", block)
    return (yield from parts.final_norm("final_norm", stream, own.final_norm))


def memory_for(config: ModelConfig, inputs: Inputs) -> Remember:
    """What cross-attention will read: an encoder's output, the request's rows, or nothing."""
    if inputs.memory is None:
        return no_memory
    if config.encoder is None:
        return posted_memory
    return partial(encoded, parts_for(config.encoder, inputs.memory), inputs.memory)


def encoded(parts: Parts, source: Inputs, w: ModelWeights, inputs: Inputs) -> Equations:
    """The encoder's stack on its own input: (..., s) or (..., s, d) -> (..., s, d)."""
    own = w.encoder
    assert own is not None  # noqa: S101 - the config has an encoder
    return (yield from prefixed(ENCODER, stack(parts, w, own, source, np.empty(0, w.dtype))))


def posted_memory(w: ModelWeights, inputs: Inputs) -> Equations:
    """The posted rows, in the model's dtype: (..., s, d)."""
    assert inputs.memory is not None  # noqa: S101 - memory_for looked
    return np.array(inputs.memory.tensor, w.dtype)
    yield  # an equation, though an empty one


def no_memory(w: ModelWeights, inputs: Inputs) -> Equations:
    """Nothing: no block asks for it."""
    return np.empty(0, w.dtype)
    yield  # an equation, though an empty one


def embedded(multiplier: float, w: ModelWeights, inputs: Inputs) -> Equations:
    """multiplier · W_E[token_ids]: (..., n) -> (..., n, d)."""
    return (yield "embed", multiplier * w.W_E[inputs.token_ids])


def posted(w: ModelWeights, inputs: Inputs) -> Equations:
    """The posted tensor, in the model's dtype: (..., n, d)."""
    return np.array(inputs.tensor, w.dtype)  # a copy: the posted array stays its owner's
    yield  # an equation, though an empty one


def with_learned(x: Array, w: StackWeights, position_ids: Ints) -> Equations:
    """x + W_pos[position_ids]: (..., n, d) -> (..., n, d)."""
    pos_embed = yield "pos_embed", np.broadcast_to(w.W_pos[position_ids], x.shape)
    return x + pos_embed


def with_sinusoids(x: Array, w: StackWeights, position_ids: Ints) -> Equations:
    """x + PE(position_ids): (..., n, d) -> (..., n, d)."""
    table = positions.sinusoids(position_ids, x.shape[-1], w.dtype)
    pos_embed = yield "pos_embed", np.broadcast_to(table, x.shape)
    return x + pos_embed


def without_positions(x: Array, w: StackWeights, position_ids: Ints) -> Equations:
    """x itself: position enters inside attention, or not at all."""
    return x
    yield  # an equation, though an empty one


def with_types(x: Array, w: StackWeights, inputs: Inputs) -> Equations:
    """x + W_type[token_types], type 0 where none is given: (..., n, d) -> (..., n, d)."""
    types = np.int64(0) if inputs.token_types is None else inputs.token_types
    type_embed = yield "type_embed", np.broadcast_to(w.W_type[types], x.shape)
    return x + type_embed


def without_types(x: Array, w: StackWeights, inputs: Inputs) -> Equations:
    """x itself: no token has a type."""
    return x
    yield  # an equation, though an empty one


def mlm_head(config: ModelConfig, x: Array, w: ModelWeights) -> Equations:
    """LN(act(x W + b)): (..., n, d) -> same; what BERT's readout of a masked token reads."""
    up = yield "mlm_head.up", ops.linear(x, w.W_mlm, w.b_mlm)
    hidden = yield "mlm_head.hidden", activate(config.ffn.activation, up, out=ops.free(up))
    return (yield from NORMS[config.norm.kind]("mlm_norm", hidden, w.mlm_norm))


def no_head(x: Array, w: ModelWeights) -> Equations:
    """x itself: the readout reads the stream."""
    return x
    yield  # an equation, though an empty one


def unembedded(config: ModelConfig, x: Array, w: ModelWeights) -> Equations:
    """cap(multiplier · (x W_U + b_U)): (..., n, d) -> (..., n, V)."""
    logits = ops.linear(x, w.W_U, w.b_U)
    scaled = np.multiply(logits, config.logit_multiplier, out=logits)
    return (yield "logits", ops.capped(scaled, config.logit_softcap, out=scaled))


def hidden_only(x: Array, w: ModelWeights) -> Equations:
    """x itself: nothing is read out."""
    return x
    yield  # an equation, though an empty one


PLACES: Mapping[str, Place] = {
    "none": without_positions,
    "sinusoidal": with_sinusoids,
    "learned": with_learned,
    "rope": without_positions,
    "alibi": without_positions,
    "t5_bias": without_positions,
}
"""By `position.kind`: how position joins the stream below the first block."""
