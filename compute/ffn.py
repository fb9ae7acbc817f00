"""The feed-forward sublayer as equations, chosen by the config. Each row by itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from compute import ops
from compute.activations import activate
from compute.block_weights import FfnWeights
from compute.config import FfnConfig
from compute.types import Array, Equations, Ints

FeedForward = Callable[[Array, FfnWeights], Equations]
Hidden = Callable[[str, Array, Ints, FfnWeights], Array]
Joined = Callable[[Array, Array, FfnWeights], Equations]
Shared = Callable[[Array, FfnWeights], Array]
Weigh = Callable[[Array, Ints], Array]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """How a mixture chooses, weighs and joins its experts."""

    activation: str
    top_k: int
    weigh: Weigh
    hidden: Hidden
    join: Joined


def mixture(by: Experts, F: Array, w: FfnWeights) -> Equations:
    """Σ_c p_c expert_c(F) over the experts c with the largest router logits: (..., n, d) -> same.

    Shazeer et al. 2017, arXiv:1701.06538, section 2; Mixtral, arXiv:2401.04088, section 2.1.
    """
    router = yield "ffn.router", ops.linear(F, w.W_router, w.b_router)
    experts = yield "ffn.experts", ops.largest(router, by.top_k)
    weights = yield "ffn.expert_weights", by.weigh(router, experts)
    hidden = yield "ffn.expert_hidden", by.hidden(by.activation, F, experts, w)
    expert_out = yield "ffn.expert_out", ops.by_expert(hidden, experts, w.W_out, w.b_out)
    return (yield from by.join(ops.weighted_sum(weights, expert_out), F, w))


def mlp_hidden(activation: str, F: Array, experts: Ints, w: FfnWeights) -> Array:
    """act(F W_in + b_in) of each chosen expert: (..., n, d), (..., n, c) -> (..., n, c, f)."""
    up = ops.by_expert(ops.for_each_choice(F, experts), experts, w.W_in, w.b_in)
    return activate(activation, up, out=up)


def gated_hidden(activation: str, F: Array, experts: Ints, w: FfnWeights) -> Array:
    """act(F W_gate + b_gate) · (F W_in + b_in) of each chosen expert, likewise."""
    rows = ops.for_each_choice(F, experts)
    gate = ops.by_expert(rows, experts, w.W_gate, w.b_gate)
    up = ops.by_expert(rows, experts, w.W_in, w.b_in)
    return ops.multiply(activate(activation, gate, out=gate), up)


def alone(mixed: Array, F: Array, w: FfnWeights) -> Equations:
    """No shared expert: its stages do not exist, so nothing is yielded."""
    return mixed
    yield  # an equation, though an empty one


def with_shared(shared: Shared, mixed: Array, F: Array, w: FfnWeights) -> Equations:
    """mixed + shared(F): one more expert sees every token. DeepSeekMoE, arXiv:2401.06066, 3.2."""
    return mixed + (yield "ffn.shared_out", shared(F, w))


def with_weighed_shared(shared: Shared, mixed: Array, F: Array, w: FfnWeights) -> Equations:
    """mixed + sigmoid(F W_shared_weight) · shared(F). Qwen2-MoE's code."""
    weight = yield "ffn.shared_weight", ops.sigmoid(F @ w.W_shared_weight)
    return mixed + (yield "ffn.shared_out", weight * shared(F, w))


def shared_mlp(activation: str, F: Array, w: FfnWeights) -> Array:
    """act(F W_shared_in) W_shared_out: (..., n, d) -> (..., n, u) -> (..., n, d)."""
    up = F @ w.W_shared_in
    return activate(activation, up, out=up) @ w.W_shared_out


def shared_gated(activation: str, F: Array, w: FfnWeights) -> Array:
    """(act(F W_shared_gate) · (F W_shared_in)) W_shared_out, likewise."""
    up, gate = F @ w.W_shared_in, F @ w.W_shared_gate
    return ops.multiply(activate(activation, gate, out=gate), up) @ w.W_shared_out


_HIDDEN: Mapping[str, Hidden] = {"mlp": mlp_hidden, "gated": gated_hidden}
_SHARED: Mapping[str, Callable[[str, Array, FfnWeights], Array]] = {
    "mlp": shared_mlp,
    "gated": shared_gated,
}


def feed_forward_for(ffn: FfnConfig) -> FeedForward:
    """The equation of an ffn with its activation; a block without one never calls it."""
    if ffn.kind == "moe":
        experts = Experts(
            activation=ffn.activation,
            top_k=ffn.top_k,
            weigh=ops.softmax_of_chosen if ffn.renormalize else ops.chosen_of_softmax,
            hidden=_HIDDEN[ffn.expert],
            join=_joined_for(ffn),
        )
        return partial(mixture, experts)
    return partial(gated if ffn.kind == "gated" else mlp, ffn.activation)


def _joined_for(ffn: FfnConfig) -> Joined:
    if not ffn.d_shared:
        return alone
    joined = with_weighed_shared if ffn.shared_gate else with_shared
    return partial(joined, partial(_SHARED[ffn.expert], ffn.activation))
