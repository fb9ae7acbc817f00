"""Multi-head attention, one head and one pair of tokens at a time."""

import numpy as np

from oracle import functions, positions
from oracle.examples import Example
from oracle.functions import Array, Config, Ints, Stages, Weights


def attention(config: Config, w: Weights, u: Array, one: Example) -> Stages:
    """All heads, concatenated and projected: Δ_attn = concatenate(H_1 … H_h) W_O + b_O."""
    stages = queries_keys_values(config, w, u, one.position_ids)
    heads = [
        head(config, r, stages, w["attn.W_O"][r], one)
        for r in range(config["attention"]["n_heads"])
    ]
    stages |= {f"attn.{name}": np.array([each[name] for each in heads]) for name in heads[0]}
    return stages | {"attn_out": combine(config, w, stages["attn.z"])}


def queries_keys_values(config: Config, w: Weights, u: Array, position_ids: Ints) -> Stages:
    """Q, K, V = U W_Q + b_Q, U W_K + b_K, U W_V + b_V for each head; turned, with RoPE."""
    widths = config["attention"]
    q = project_heads(w, "Q", u, widths["bias"]["q"])
    k = project_heads(w, "K", u, widths["bias"]["k"])
    v = project_heads(w, "V", u, widths["bias"]["v"])
    stages = {"attn.q": q, "attn.k": k, "attn.v": v}
    if config["position"]["kind"] == "rope":
        stages["attn.q_rot"] = rotate_heads(q, position_ids, config["position"])
        stages["attn.k_rot"] = rotate_heads(k, position_ids, config["position"])
    return stages


def project_heads(w: Weights, letter: str, u: Array, has_bias: bool) -> Array:
    """U W_r + b_r for each head r; (n, d), (h, d, k), (h, k) -> (h, n, k)."""
    matrices = w[f"attn.W_{letter}"]
    h, _, width = matrices.shape
    biases = w[f"attn.b_{letter}"] if has_bias else np.zeros((h, width))
    return np.array([functions.project(u, matrices[r], biases[r]) for r in range(h)])


def rotate_heads(x: Array, position_ids: Ints, rope: Config) -> Array:
    """Each row of each head, turned by its position; (h, n, k) -> (h, n, k)."""
    return np.array(
        [
            [positions.rotate(row, int(p), rope) for row, p in zip(rows, position_ids, strict=True)]
            for rows in x
        ]
    )


def head(config: Config, r: int, stages: Stages, w_o: Array, one: Example) -> Stages:
    """Head r from its dot products to what it adds to the stream; w_o: (v, d)."""
    widths = config["attention"]
    shared = r // (widths["n_heads"] // widths["n_kv_heads"])
    q = stages.get("attn.q_rot", stages["attn.q"])[r]
    k = stages.get("attn.k_rot", stages["attn.k"])[shared]
    v = stages["attn.v"][shared]
    dots = np.array([[np.dot(q_i, k_j) for k_j in k] for q_i in q])
    scores = score(config, r, dots, one)
    pattern = np.array([functions.softmax(row) for row in scores])
    z = np.array([mix(weights, v) for weights in pattern])
    return {
        "dots": dots,
        "scores": scores,
        "pattern": pattern,
        "z": z,
        "head_out": np.array([np.dot(z_i, w_o) for z_i in z]),
        "source_out": sources(pattern, v, w_o),
    }


def score(config: Config, r: int, dots: Array, one: Example) -> Array:
    """scale · q_i·k_j, less the head's slope for each position between; -inf if forbidden."""
    widths, position = config["attention"], config["position"]
    slope = 0.0
    if position["kind"] == "alibi":
        slope = positions.slopes(position["alibi_rule"], widths["n_heads"])[r]
    scores = np.full(dots.shape, -np.inf)
    for i, p in enumerate(one.position_ids):
        for j, other in enumerate(one.position_ids):
            if one.allowed[i, j]:
                scores[i, j] = widths["scale"] * dots[i, j] - slope * abs(int(p) - int(other))
    return scores


def mix(weights: Array, v: Array) -> Array:
    """h_i = Σ_j a_ij v_j, one source after the other; (m,), (m, v) -> (v,)."""
    mixture = np.zeros(v.shape[1])
    for a_ij, v_j in zip(weights, v, strict=True):
        mixture = mixture + a_ij * v_j
    return mixture


def sources(pattern: Array, v: Array, w_o: Array) -> Array:
    """a_ij (v_j W_O^(r)); (n, m), (m, v), (v, d) -> (n, m, d)."""
    written = [np.dot(v_j, w_o) for v_j in v]
    return np.array(
        [[a_ij * row for a_ij, row in zip(weights, written, strict=True)] for weights in pattern]
    )


def combine(config: Config, w: Weights, z: Array) -> Array:
    """concatenate(heads, axis=-1) @ W_O + b_O; (h, n, v), (h·v, d), (d,) -> (n, d)."""
    d = config["d_model"]
    w_o = np.concatenate(list(w["attn.W_O"]), axis=0)
    b_o = w["attn.b_O"] if config["attention"]["bias"]["o"] else np.zeros(d)
    return functions.project(np.concatenate(list(z), axis=-1), w_o, b_o)
