"""Multi-head attention, one head and one pair of tokens at a time."""

import numpy as np

from oracle import examples, functions, norms, positions
from oracle.examples import Example, Memory
from oracle.functions import Array, Bools, Config, Stages, Weights

Update = tuple[Stages, Array]
"""A sublayer's stages, and what it makes of the stream."""


def attention(config: Config, w: Weights, u: Array, one: Example) -> Update:
    """All heads, concatenated and projected: concatenate(H_1 … H_h) W_O + b_O."""
    stages = queries_keys_values(config, w, u, one)
    allowed = examples.allowed_pairs(config["attention"], one)
    heads = [head(config, r, stages, w, one, allowed) for r in each_head(config)]
    stages |= {f"attn.{name}": np.array([each[name] for each in heads]) for name in heads[0]}
    return stages, combine(config, w, "attn", stages["attn.z"])


def each_head(config: Config) -> range:
    """0 to n_heads - 1."""
    return range(config["attention"]["n_heads"])


def queries_keys_values(config: Config, w: Weights, u: Array, one: Example) -> Stages:
    """Q, K, V = U W_Q + b_Q, U W_K + b_K, U W_V + b_V for each head; Q and K normalized, if they
    are, then turned, with RoPE."""
    stages = {f"attn.{x.lower()}": project_heads(config, w, "attn", x, u) for x in "QKV"}
    over = config["attention"].get("qk_norm", "none")
    if over != "none":
        for x in ("attn.q", "attn.k"):
            name = f"{x}_norm"
            stages[name] = norms.of_heads(over, config["norm"], name, w, stages[x])
    if config["position"]["kind"] == "rope":
        for x in ("attn.q", "attn.k"):
            straight = stages.get(f"{x}_norm", stages[x])
            stages[f"{x}_rot"] = rotate_heads(straight, one, config["position"])
    return stages


def project_heads(config: Config, w: Weights, part: str, letter: str, u: Array) -> Array:
    """U W_r + b_r for each head r; (n, d), (h, d, k), (h, k) -> (h, n, k)."""
    matrices = w[f"{part}.W_{letter}"]
    h, _, width = matrices.shape
    has_bias = config["attention"]["bias"][letter.lower()]
    biases = w[f"{part}.b_{letter}"] if has_bias else np.zeros((h, width))
    return np.array([functions.project(u, matrices[r], biases[r]) for r in range(h)])


def rotate_heads(x: Array, one: Example, rope: Config) -> Array:
    """Each row of each head, turned by its position; (h, n, k) -> (h, n, k)."""
    return np.array(
        [
            [
                positions.rotate(row, int(p), rope, one.length)
                for row, p in zip(rows, one.position_ids, strict=True)
            ]
            for rows in x
        ]
    )


def head(
    config: Config, r: int, stages: Stages, w: Weights, one: Example, allowed: Bools
) -> Stages:
    """Head r from its dot products to what it adds to the stream."""
    shared = kv_head(config, r)
    q = last_of(stages, "attn.q")[r]
    k = last_of(stages, "attn.k")[shared]
    v, w_o = stages["attn.v"][shared], w["attn.W_O"][r]
    dots = np.array([[np.dot(q_i, k_j) for k_j in k] for q_i in q])
    bias = biases_of_positions(config, r, w, one)
    scores = score(config, dots, bias, allowed)
    own = {"dots": dots, "scores": scores} | weigh(config, r, w, scores)
    own["z"] = np.array([mix(weights, v) for weights in own["pattern"]])
    own["head_out"] = np.array([np.dot(z_i, w_o) for z_i in own["z"]])
    own["source_out"] = sources(own["pattern"], v, w_o)
    return own


def last_of(stages: Stages, name: str) -> Array:
    """What the dot products read: turned, else normalized, else as projected."""
    return stages.get(f"{name}_rot", stages.get(f"{name}_norm", stages[name]))


def kv_head(config: Config, r: int) -> int:
    """The key/value head that head r reads: neighbours share one."""
    widths = config["attention"]
    return int(r // (widths["n_heads"] // widths["n_kv_heads"]))


def biases_of_positions(config: Config, r: int, w: Weights, one: Example) -> Array:
    """What head r adds for where query i and key j stand: ALiBi's slope, or T5's table; (n, m)."""
    position = config["position"]
    n = len(one.position_ids)
    bias = np.zeros((n, n))
    for i, p in enumerate(one.position_ids):
        for j, other in enumerate(one.position_ids):
            distance = int(other) - int(p)
            if position["kind"] == "alibi":
                slopes = positions.slopes(position["alibi_rule"], config["attention"]["n_heads"])
                bias[i, j] = -slopes[r] * abs(distance)
            elif position["kind"] == "t5_bias":
                bias[i, j] = w["rel_bias.W_rel"][positions.t5_bucket(distance, position), r]
    return bias


def score(config: Config, dots: Array, bias: Array, allowed: Bools) -> Array:
    """softcap(scale · q_i·k_j) + bias; -inf if forbidden."""
    scale, cap = config["attention"]["scale"], config["attention"].get("softcap")
    scores = np.full(dots.shape, -np.inf)
    for i, row in enumerate(dots):
        for j, dot in enumerate(row):
            if allowed[i, j]:
                scores[i, j] = functions.softcap(scale * dot, cap) + bias[i, j]
    return scores


def weigh(config: Config, r: int, w: Weights, scores: Array) -> Stages:
    """The pattern, row by row; with sinks, also what the head's sink takes of each row."""
    if not config["attention"].get("sinks", False):
        return {"pattern": np.array([functions.softmax(row) for row in scores])}
    shares = [functions.softmax_with_sink(row, w["attn.sinks"][r]) for row in scores]
    return {
        "pattern": np.array([pattern for pattern, _ in shares]),
        "sink": np.array([sink for _, sink in shares]),
    }


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


def combine(config: Config, w: Weights, part: str, z: Array) -> Array:
    """concatenate(heads, axis=-1) @ W_O + b_O; (h, n, v), (h·v, d), (d,) -> (n, d)."""
    d = config["d_model"]
    w_o = np.concatenate(list(w[f"{part}.W_O"]), axis=0)
    b_o = w[f"{part}.b_O"] if config["attention"]["bias"]["o"] else np.zeros(d)
    return functions.project(np.concatenate(list(z), axis=-1), w_o, b_o)


def cross_attention(config: Config, w: Weights, u: Array, memory: Memory) -> Update:
    """Queries of the stream, keys and values of the memory; no positions, no order, no window."""
    stages = {"cross.q": project_heads(config, w, "cross", "Q", u)}
    stages["cross.k"] = project_heads(config, w, "cross", "K", memory.rows)
    stages["cross.v"] = project_heads(config, w, "cross", "V", memory.rows)
    heads = [cross_head(config, r, stages, w, memory) for r in each_head(config)]
    stages |= {f"cross.{name}": np.array([each[name] for each in heads]) for name in heads[0]}
    return stages, combine(config, w, "cross", stages["cross.z"])


def cross_head(config: Config, r: int, stages: Stages, w: Weights, memory: Memory) -> Stages:
    """Head r from its scores over the memory to what it adds to the stream."""
    shared = kv_head(config, r)
    q, k, v = stages["cross.q"][r], stages["cross.k"][shared], stages["cross.v"][shared]
    dots = np.array([[np.dot(q_i, k_j) for k_j in k] for q_i in q])
    allowed = np.array([memory.key_mask for _ in q])
    scores = score(config, dots, np.zeros(dots.shape), allowed)
    pattern = np.array([functions.softmax(row) for row in scores])
    z = np.array([mix(weights, v) for weights in pattern])
    head_out = np.array([np.dot(z_i, w["cross.W_O"][r]) for z_i in z])
    return {"scores": scores, "pattern": pattern, "z": z, "head_out": head_out}
