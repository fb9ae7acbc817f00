"""The feed-forward sublayer as equations, chosen by the config. Each row by itself."""

from collections.abc import Callable
from functools import partial

from compute import ops
from compute.activations import activate
from compute.config import FfnConfig
from compute.types import Array, Equations
from compute.weights import FfnWeights

FeedForward = Callable[[Array, FfnWeights], Equations]


def mlp(activation: str, F: Array, w: FfnWeights) -> Equations:
    """act(F W_in + b_in) W_out + b_out: (..., n, d) -> (..., n, f) -> (..., n, d)."""
    up = yield "ffn.up", ops.linear(F, w.W_in, w.b_in)
    hidden = yield "ffn.hidden", activate(activation, up, out=ops.free(up))
    return ops.linear(hidden, w.W_out, w.b_out)


def gated(activation: str, F: Array, w: FfnWeights) -> Equations:
    """(act(F W_gate + b_gate) · (F W_in + b_in)) W_out + b_out. Shazeer 2020, equation 6."""
    up = yield "ffn.up", ops.linear(F, w.W_in, w.b_in)
    gate = yield "ffn.gate", ops.linear(F, w.W_gate, w.b_gate)
    opened = activate(activation, gate, out=ops.free(gate))
    hidden = yield "ffn.hidden", ops.multiply(opened, up)
    return ops.linear(hidden, w.W_out, w.b_out)


def feed_forward_for(ffn: FfnConfig) -> FeedForward:
    """The equation of an ffn with its activation; a block without one never calls it."""
    return partial(gated if ffn.kind == "gated" else mlp, ffn.activation)
