"""The parts of a config, drawn: attention, ffn, norm, position, what a layer has of its own."""

from typing import Any

from oracle.sizes import Rng, Sizes, one_of

Drawn = dict[str, Any]

ACTIVATIONS = ("gelu", "gelu_tanh", "quick_gelu", "relu", "relu2", "silu", "identity")
THETAS = (10000.0, 500000.0, 100.0)
SCALINGS = ("linear", "dynamic", "yarn", "llama3")


def coin(rng: Rng) -> bool:
    """True half of the time."""
    return likely(rng, 0.5)


def likely(rng: Rng, chance: float) -> bool:
    """True this often."""
    return bool(rng.random() < chance)


def random_attention(rng: Rng, lengths: Sizes, norm: str) -> Drawn:
    """Softmax attention; its scale not always 1/sqrt(d_head), its window not always narrow."""
    return {
        "kind": "softmax",
        "n_heads": lengths.h,
        "n_kv_heads": lengths.g,
        "d_head": lengths.k,
        "d_value": lengths.v,
        "scale": random_scale(rng, lengths.k),
        "softcap": float(rng.uniform(0.5, 5.0)) if likely(rng, 0.2) else None,
        "qk_norm": one_of(rng, qk_norms(lengths, norm)),
        "sinks": likely(rng, 0.2),
        "mask": one_of(rng, ("causal", "full")),
        "window": random_window(rng, lengths.n),
        "bias": {letter: coin(rng) for letter in "qkvo"},
    }


def random_scale(rng: Rng, d_head: int) -> float:
    """1/sqrt(d_head), or another."""
    return float(d_head**-0.5 if coin(rng) else rng.uniform(0.1, 1.5))


def random_window(rng: Rng, n: int) -> int | None:
    """None, narrow, or wider than the input."""
    return one_of(rng, (None, None, None, 1, 2, 3, n + 1))


def qk_norms(lengths: Sizes, norm: str) -> tuple[str, ...]:
    """The norms of queries and keys there may be. Few numbers that happen to be small, or to a
    LayerNorm nearly equal, have hardly a digit that float32 knows."""
    fewest = 5
    if norm == "none":
        return ("none",)
    head = ("head",) if lengths.k >= fewest else ()
    full = ("full",) if lengths.g * lengths.k >= fewest else ()
    return ("none", "none", *head, *full)


def random_ffn(rng: Rng, lengths: Sizes, norm: str) -> Drawn:
    """Two matrices, three, or experts; every activation. Gates that are squared make cubes, which
    a few blocks without norms make too large to compare."""
    kind = one_of(rng, ("mlp", "gated", "moe"))
    ffn: Drawn = {"kind": kind, "d_ff": lengths.f}
    if kind == "moe":
        ffn |= random_experts(rng, lengths)
    has_gate = "gated" in (kind, ffn.get("expert"))
    cubes = has_gate and norm == "none"
    ffn["activation"] = one_of(rng, [a for a in ACTIVATIONS if not (cubes and a == "relu2")])
    return ffn | {"bias": {"in": coin(rng), "gate": has_gate and coin(rng), "out": coin(rng)}}


def random_experts(rng: Rng, lengths: Sizes) -> Drawn:
    """Some or all of the experts for each token; with a shared one half of the time."""
    has_shared = coin(rng)
    return {
        "n_experts": lengths.e,
        "top_k": lengths.c,
        "expert": one_of(rng, ("gated", "mlp")),
        "renormalize": coin(rng),
        "router_bias": coin(rng),
        "d_shared": lengths.u if has_shared else 0,
        "shared_gate": has_shared and coin(rng),
    }


def random_norm(rng: Rng, placements: tuple[str, ...], *, can_share: bool) -> Drawn:
    """LayerNorm, RMSNorm or none, in one of the places."""
    kind = one_of(rng, ("layernorm", "layernorm", "rmsnorm", "rmsnorm", "none"))
    if kind == "none":
        return {"kind": "none"}
    norm: Drawn = {
        "kind": kind,
        "placement": one_of(rng, placements),
        "eps": one_of(rng, (1e-5, 1e-6, 1e-12, 1e-2)),
        "gain_offset": one_of(rng, (0.0, 1.0)),
        "shared": can_share and coin(rng),
    }
    return norm | ({"bias": likely(rng, 0.7)} if kind == "layernorm" else {})


def random_position(rng: Rng, kind: str, lengths: Sizes) -> Drawn:
    """The fields that apply to a kind of position."""
    if kind == "learned":
        return {"kind": kind, "n_positions": lengths.positions}
    if kind == "alibi":
        return {"kind": kind, "alibi_rule": one_of(rng, ("bloom", "geometric"))}
    if kind == "t5_bias":
        return {"kind": kind, **random_buckets(rng, lengths.r)}
    return {"kind": kind, **random_rope(rng, lengths.k)} if kind == "rope" else {"kind": kind}


def random_buckets(rng: Rng, buckets: int) -> Drawn:
    """Both directions, if the buckets can be halved; distances that end within an input or not."""
    bidirectional = buckets % 2 == 0 and likely(rng, 0.6)
    exact = buckets // 4 if bidirectional else buckets // 2
    return {
        "n_buckets": buckets,
        "max_distance": one_of(rng, (exact + 1, exact + 3, 3 * exact, 64)),
        "bidirectional": bidirectional,
    }


def random_rope(rng: Rng, d_head: int) -> Drawn:
    """The whole head turns or a part of it, at its own speeds or at stretched ones."""
    whole = d_head - d_head % 2
    width = whole if coin(rng) else one_of(rng, range(2, whole + 1, 2))
    return {
        "theta": one_of(rng, THETAS),
        "rotary_dim": width,
        "pairing": one_of(rng, ("half", "interleaved")),
        "scaling": random_scaling(rng, width),
    }


def random_scaling(rng: Rng, rotary_dim: int) -> Drawn:
    """None, or a kind with the fields that apply to it."""
    dynamic = () if rotary_dim == 2 else ("dynamic", "dynamic")
    kind = one_of(rng, ("none", "linear", "yarn", "llama3", *dynamic))
    if kind == "none":
        return {"kind": "none"}
    scaling: Drawn = {"kind": kind, "factor": float(rng.uniform(1.0, 8.0))}
    if kind == "linear":
        return scaling
    scaling["original_positions"] = one_of(rng, (3, 8, 24, 64, 512))
    if kind == "yarn":
        scaling |= {
            "beta_fast": one_of(rng, (32.0, 4.0)),
            "beta_slow": one_of(rng, (1.0, 0.25)),
            "attention_factor": one_of(rng, (1.0, float(rng.uniform(0.5, 1.5)))),
        }
    if kind == "llama3":
        scaling |= {
            "low_freq_factor": one_of(rng, (1.0, 0.5)),
            "high_freq_factor": one_of(rng, (4.0, 16.0)),
        }
    return scaling


def random_layer(rng: Rng, config: Drawn) -> Drawn:
    """A window, a scale and a rotation of a block's own; some turn nothing."""
    theta, scaling = None, {"kind": "none"}
    if config["position"]["kind"] == "rope" and likely(rng, 0.7):
        theta = one_of(rng, THETAS)
        scaling = random_scaling(rng, config["position"]["rotary_dim"])
    return {
        "window": one_of(rng, (None, 1, 2, 3)),
        "scale": random_scale(rng, config["attention"]["d_head"]),
        "theta": theta,
        "scaling": scaling,
    }
