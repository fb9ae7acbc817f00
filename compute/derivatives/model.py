"""The Steps of a whole model on a kind of input, beside `compute.model`."""

from functools import partial

from compute.block_weights import NormWeights
from compute.config import ModelConfig, block_config, reads_out
from compute.derivatives import operations
from compute.derivatives.block import MEMORY, block
from compute.derivatives.norms import NORMS
from compute.derivatives.slopes import slope
from compute.derivatives.steps import Here, Step, Steps, Values, added, given, prefixed
from compute.selection import Scene
from compute.tensors import ENCODER
from compute.types import Array

Pulled = tuple[Array, ...]

ROWS, EMBEDDED = "rows", "embedded"
"""Posted rows, and the sum that enters the stack: neither has a name in the catalogue."""


def model(scene: Scene) -> Steps:
    """logits = head(stack(input, memory)) W_U + b_U; the memory is there before the stack."""
    config = scene.config
    memory = yield from remembered(scene)
    final = yield from stack(config, scene.tokens, memory)
    read = yield from head(config, final)
    return (yield from unembedded(config, read))


def remembered(scene: Scene) -> Steps:
    """What cross-attention reads: an encoder's output, or the request's rows."""
    encoder = scene.config.encoder
    if encoder is None:
        return f"{MEMORY} {ROWS}"
    return (yield from prefixed(ENCODER, stack(encoder, scene.memory_tokens, "")))


def stack(config: ModelConfig, tokens: bool, memory: str) -> Steps:
    """X^(0) = LN(embedding + positions + types); X^(l+1) = block_l(X^(l)); LN(X^(N))."""
    stream = yield from embedding(config, tokens)
    for layer in range(config.n_layers):
        own, prefix = block_config(config, layer), f"blocks.{layer}."
        if config.cross_attention:
            yield from added(prefix + MEMORY, memory)
        yield from added(prefix + "resid_pre", stream)
        stream = yield from prefixed(prefix, block(own))
    final = NORMS[config.norm.kind if config.final_norm else "none"]
    return (yield from final("final_norm", stream, _final_norm))


def embedding(config: ModelConfig, tokens: bool) -> Steps:
    """LN(embedding + positions + types)."""
    parts = {
        "embed": tokens,
        "pos_embed": config.position.kind in ("learned", "sinusoidal"),
        "type_embed": config.token_types > 0,
    }
    there = [name for name, exists in parts.items() if exists]
    for name in there:
        yield given(name)
    stream = yield from added(EMBEDDED, *there, *([] if tokens else [ROWS]))
    norm = NORMS[config.norm.kind if config.embed_norm else "none"]
    return (yield from norm("embed_norm", stream, _embed_norm))


def head(config: ModelConfig, x: str) -> Steps:
    """LN(act(x W + b)), where there is one."""
    if not config.mlm_head:
        return x
    up, hidden = "mlm_head.up", "mlm_head.hidden"
    yield Step(up, (x,), (), _mlm_up)
    yield Step(hidden, (up,), (up,), partial(_activated, config.ffn.activation))
    return (yield from NORMS[config.norm.kind]("mlm_norm", hidden, _mlm_norm))


def unembedded(config: ModelConfig, x: str) -> Steps:
    """cap(multiplier · (x W_U + b_U)), where it is read out."""
    if not reads_out(config):
        return x
    if config.logit_softcap is None:
        yield Step("logits", (x,), (), partial(_logits, config.logit_multiplier))
        return "logits"
    pull = partial(_capped_logits, config.logit_multiplier, config.logit_softcap)
    yield Step("logits", (x,), ("logits",), pull)
    return "logits"


def _final_norm(here: Here) -> NormWeights:
    return here.stack.final_norm


def _embed_norm(here: Here) -> NormWeights:
    return here.stack.embed_norm


def _mlm_norm(here: Here) -> NormWeights:
    return here.model.mlm_norm


def _mlm_up(c: Array, values: Values, here: Here) -> Pulled:
    return (operations.linear(c, here.model.W_mlm),)


def _activated(activation: str, c: Array, values: Values, here: Here) -> Pulled:
    return (c * slope(activation, values[0]),)


def _logits(multiplier: float, c: Array, values: Values, here: Here) -> Pulled:
    return (operations.linear(multiplier * c, here.model.W_U),)


def _capped_logits(
    multiplier: float, softcap: float, c: Array, values: Values, here: Here
) -> Pulled:
    return _logits(multiplier, operations.uncapped(c, values[0], softcap), values, here)
