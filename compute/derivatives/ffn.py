"""The Steps of the feed-forward sublayer, beside `compute.ffn`."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from compute import ops
from compute.activations import activate
from compute.block_weights import FfnWeights
from compute.config import FfnConfig
from compute.derivatives import operations
from compute.derivatives.slopes import slope
from compute.derivatives.steps import Here, Step, Steps, Values, given
from compute.ffn import shared_gated, shared_mlp
from compute.types import Array, Ints

Pulled = tuple[Array, ...]


def feed_forward(ffn: FfnConfig, F: str, name: str) -> Steps:
    """name = the ffn's output."""
    return (yield from FFNS[ffn.kind](ffn, F, name))


def mlp(ffn: FfnConfig, F: str, name: str) -> Steps:
    """name = act(F W_in + b_in) W_out + b_out."""
    yield Step("ffn.up", (F,), (), _up)
    yield Step("ffn.hidden", ("ffn.up",), ("ffn.up",), partial(_activated, ffn.activation))
    yield Step(name, ("ffn.hidden",), (), _out)
    return name


def gated(ffn: FfnConfig, F: str, name: str) -> Steps:
    """name = (act(F W_gate + b_gate) · (F W_in + b_in)) W_out + b_out."""
    yield Step("ffn.up", (F,), (), _up)
    yield Step("ffn.gate", (F,), (), _gate)
    both = ("ffn.gate", "ffn.up")
    yield Step("ffn.hidden", both, both, partial(_opened, ffn.activation))
    yield Step(name, ("ffn.hidden",), (), _out)
    return name


def mixture(ffn: FfnConfig, F: str, name: str) -> Steps:
    """name = Σ_c p_c expert_c(F), and the shared expert. Which experts are chosen is constant
    between the points where two logits of the router are equal: no derivative passes there."""
    yield Step("ffn.router", (F,), (), _router)
    yield given("ffn.experts")
    yield _weigh(ffn)
    hidden = partial(_HIDDEN[ffn.expert], ffn.activation)
    yield Step("ffn.expert_hidden", (F,), (F, "ffn.experts"), hidden)
    yield Step("ffn.expert_out", ("ffn.expert_hidden",), ("ffn.experts",), _expert_out)
    shared = yield from _shared(ffn, F)
    summed = ("ffn.expert_weights", "ffn.expert_out")
    beside = (shared,) if shared else ()
    yield Step(name, (*summed, *beside), summed, _summed_beside if shared else _summed)
    return name


FFNS: Mapping[str, Callable[[FfnConfig, str, str], Steps]] = {
    "mlp": mlp,
    "gated": gated,
    "moe": mixture,
}
"""By `ffn.kind`."""


def _weigh(ffn: FfnConfig) -> Step:
    """The softmax over the chosen logits alone, or the chosen of the softmax over all."""
    read = ("ffn.router",)
    if ffn.renormalize:
        needs = ("ffn.expert_weights", *read, "ffn.experts")
        return Step("ffn.expert_weights", read, needs, _softmax_of_chosen)
    return Step("ffn.expert_weights", read, (*read, "ffn.experts"), _chosen_of_softmax)


def _shared(ffn: FfnConfig, F: str) -> Steps:
    """The shared expert's stages; the empty text where there is none."""
    if not ffn.d_shared:
        return ""
    if not ffn.shared_gate:
        yield Step("ffn.shared_out", (F,), (F,), partial(_shared_out, ffn))
        return "ffn.shared_out"
    yield Step("ffn.shared_weight", (F,), ("ffn.shared_weight",), _shared_weight)
    both = (F, "ffn.shared_weight")
    yield Step("ffn.shared_out", both, both, partial(_weighed_shared_out, ffn))
    return "ffn.shared_out"


def _up(c: Array, values: Values, here: Here) -> Pulled:
    return (operations.linear(c, here.block.ffn.W_in),)


def _gate(c: Array, values: Values, here: Here) -> Pulled:
    return (operations.linear(c, here.block.ffn.W_gate),)


def _out(c: Array, values: Values, here: Here) -> Pulled:
    return (operations.linear(c, here.block.ffn.W_out),)


def _activated(activation: str, c: Array, values: Values, here: Here) -> Pulled:
    return (c * slope(activation, values[0]),)


def _opened(activation: str, c: Array, values: Values, here: Here) -> Pulled:
    return opened(activation, c, *values)


def opened(activation: str, c: Array, gate: Array, up: Array) -> tuple[Array, Array]:
    """y = act(gate) · up:  gate's is ȳ up act'(gate), up's is ȳ act(gate)."""
    gate_bar, up_bar = operations.multiplied(c, activate(activation, gate), up)
    return gate_bar * slope(activation, gate), up_bar


def _router(c: Array, values: Values, here: Here) -> Pulled:
    return (operations.linear(c, here.block.ffn.W_router),)


def _softmax_of_chosen(c: Array, values: Values, here: Here) -> Pulled:
    weights, router, experts = values
    return (operations.softmax_of_chosen(c, weights, router, experts),)


def _chosen_of_softmax(c: Array, values: Values, here: Here) -> Pulled:
    router, experts = values
    return (operations.chosen_of_softmax(c, router, experts),)


def _mlp_hidden(activation: str, c: Array, values: Values, here: Here) -> Pulled:
    (F, experts), w = values, here.block.ffn
    up = ops.by_expert(ops.for_each_choice(F, experts), experts, w.W_in, w.b_in)
    return (_over_choices(c * slope(activation, up), experts, w.W_in),)


def _gated_hidden(activation: str, c: Array, values: Values, here: Here) -> Pulled:
    (F, experts), w = values, here.block.ffn
    rows = ops.for_each_choice(F, experts)
    gate = ops.by_expert(rows, experts, w.W_gate, w.b_gate)
    up = ops.by_expert(rows, experts, w.W_in, w.b_in)
    gate_bar, up_bar = opened(activation, c, gate, up)
    F_bar = _over_choices(gate_bar, experts, w.W_gate)
    return (F_bar + _over_choices(up_bar, experts, w.W_in),)


_HIDDEN = {"mlp": _mlp_hidden, "gated": _gated_hidden}


def _over_choices(c: Array, experts: Ints, W: Array) -> Array:
    """Σ_c ȳ_c W_e^T: (..., n, c, f) -> (..., n, d)."""
    return np.asarray(operations.by_expert(c, experts, W).sum(axis=-2))


def _expert_out(c: Array, values: Values, here: Here) -> Pulled:
    return (operations.by_expert(c, values[0], here.block.ffn.W_out),)


def _summed(c: Array, values: Values, here: Here) -> Pulled:
    return operations.weighted(c, *values)


def _summed_beside(c: Array, values: Values, here: Here) -> Pulled:
    return (*operations.weighted(c, *values), c)


def _shared_weight(c: Array, values: Values, here: Here) -> Pulled:
    """p = sigmoid(F w):  F̄ = p̄ p (1 - p) w^T."""
    p = values[0]
    return (operations.linear(c * (p * (1.0 - p)), here.block.ffn.W_shared_weight),)


def _shared_out(ffn: FfnConfig, c: Array, values: Values, here: Here) -> Pulled:
    w = here.block.ffn
    return (_SHARED[ffn.expert](ffn.activation, c, values[0], w),)


def _weighed_shared_out(ffn: FfnConfig, c: Array, values: Values, here: Here) -> Pulled:
    (F, weight), w = values, here.block.ffn
    out = _SHARED_OUT[ffn.expert](ffn.activation, F, w)
    weight_bar = (c * out).sum(axis=-1, keepdims=True)
    return _SHARED[ffn.expert](ffn.activation, c * weight, F, w), weight_bar


def _shared_mlp(activation: str, c: Array, F: Array, w: FfnWeights) -> Array:
    hidden_bar = operations.linear(c, w.W_shared_out)
    up_bar = hidden_bar * slope(activation, F @ w.W_shared_in)
    return operations.linear(up_bar, w.W_shared_in)


def _shared_gated(activation: str, c: Array, F: Array, w: FfnWeights) -> Array:
    hidden_bar = operations.linear(c, w.W_shared_out)
    gate, up = F @ w.W_shared_gate, F @ w.W_shared_in
    gate_bar, up_bar = opened(activation, hidden_bar, gate, up)
    F_bar = operations.linear(gate_bar, w.W_shared_gate)
    return F_bar + operations.linear(up_bar, w.W_shared_in)


_SHARED = {"mlp": _shared_mlp, "gated": _shared_gated}
_SHARED_OUT = {"mlp": shared_mlp, "gated": shared_gated}
