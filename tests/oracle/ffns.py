"""The feed-forward network: two matrices, a gated one, or a mixture of experts."""

import numpy as np

from oracle import functions
from oracle.functions import Array, Config, Ints, Stages, Weights
from oracle.heads import Update


def feed_forward(ffn: Config, w: Weights, f: Array) -> Update:
    """hidden = act(F W_in + b_in), or act(F W_gate + b_gate) · up; then hidden W_out + b_out."""
    if ffn["kind"] == "moe":
        return mixture(ffn, w, f)
    bias, d_ff = ffn["bias"], ffn["d_ff"]
    stages: Stages = {}
    b_in = w["ffn.b_in"] if bias["in"] else np.zeros(d_ff)
    stages["ffn.up"] = up = functions.project(f, w["ffn.W_in"], b_in)
    if ffn["kind"] == "gated":
        b_gate = w["ffn.b_gate"] if bias["gate"] else np.zeros(d_ff)
        stages["ffn.gate"] = gate = functions.project(f, w["ffn.W_gate"], b_gate)
        stages["ffn.hidden"] = hidden = functions.activate(ffn["activation"], gate) * up
    else:
        stages["ffn.hidden"] = hidden = functions.activate(ffn["activation"], up)
    b_out = w["ffn.b_out"] if bias["out"] else np.zeros(f.shape[1])
    return stages, functions.project(hidden, w["ffn.W_out"], b_out)


def mixture(ffn: Config, w: Weights, f: Array) -> Update:
    """Σ_c weight_c · expert_c(F) over each token's chosen experts, plus the shared expert."""
    b_router = w["ffn.b_router"] if ffn["router_bias"] else np.zeros(ffn["n_experts"])
    router = functions.project(f, w["ffn.W_router"], b_router)
    experts = np.array([largest(row, ffn["top_k"]) for row in router], dtype=np.int64)
    stages: Stages = {"ffn.router": router, "ffn.experts": experts}
    weights = [weigh(ffn, row, own) for row, own in zip(router, experts, strict=True)]
    stages["ffn.expert_weights"] = np.array(weights)
    runs = [[expert(ffn, w, e, row) for e in own] for row, own in zip(f, experts, strict=True)]
    stages["ffn.expert_hidden"] = np.array([[hidden for hidden, _ in own] for own in runs])
    stages["ffn.expert_out"] = np.array([[out for _, out in own] for own in runs])
    stages |= shared(ffn, w, f)
    total = stages.get("ffn.shared_out", np.zeros(f.shape))
    mixed = [mix(own, outs) for own, outs in zip(weights, stages["ffn.expert_out"], strict=True)]
    return stages, np.array(mixed) + total


def largest(logits: Array, count: int) -> list[int]:
    """The indices of the largest, largest first; of equals the lower index first."""
    return sorted(range(len(logits)), key=lambda e: (-logits[e], e))[:count]


def weigh(ffn: Config, logits: Array, chosen: Ints) -> Array:
    """Softmax over the chosen logits, or the chosen ones of the softmax over all; (e,) -> (c,)."""
    if ffn["renormalize"]:
        return functions.softmax(np.array([logits[e] for e in chosen]))
    shares = functions.softmax(logits)
    return np.array([shares[e] for e in chosen])


def expert(ffn: Config, w: Weights, e: int, row: Array) -> tuple[Array, Array]:
    """One expert's hidden (f,) and output (d,) of one token's row (d,)."""
    sides = [side for side in ("in", "gate", "out") if f"ffn.W_{side}" in w]
    own = {f"ffn.W_{side}": w[f"ffn.W_{side}"][e] for side in sides}
    own |= {f"ffn.b_{side}": w[f"ffn.b_{side}"][e] for side in sides if ffn["bias"][side]}
    stages, out = feed_forward({**ffn, "kind": ffn["expert"]}, own, row[np.newaxis])
    return stages["ffn.hidden"][0], out[0]


def mix(weights: Array, outs: Array) -> Array:
    """Σ_c weight_c out_c; (c,), (c, d) -> (d,)."""
    total = np.zeros(outs.shape[1])
    for weight, out in zip(weights, outs, strict=True):
        total = total + weight * out
    return total


def shared(ffn: Config, w: Weights, f: Array) -> Stages:
    """The expert that sees every token, without biases; weighed by a sigmoid, where it is."""
    if not ffn["d_shared"]:
        return {}
    own = {
        f"ffn.W_{side}": w[f"ffn.W_shared_{side}"]
        for side in ("in", "gate", "out")
        if f"ffn.W_shared_{side}" in w
    }
    plain = {
        "kind": ffn["expert"],
        "d_ff": ffn["d_shared"],
        "activation": ffn["activation"],
        "bias": {"in": False, "gate": False, "out": False},
    }
    _, out = feed_forward(plain, own, f)
    if not ffn["shared_gate"]:
        return {"ffn.shared_out": out}
    logits = functions.project(f, w["ffn.W_shared_weight"], np.zeros(1))
    weight = np.array([[functions.sigmoid(float(logit)) for logit in row] for row in logits])
    return {"ffn.shared_weight": weight, "ffn.shared_out": weight * out}
