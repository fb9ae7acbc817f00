"""Seeded cases to compare by: configs that meet every option, with weights and inputs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from oracle import inputs, sizes, weights
from oracle.functions import Array
from oracle.inputs import Inputs
from oracle.sizes import Rng, Sizes, one_of

Drawn = dict[str, Any]

ACTIVATIONS = ("gelu", "gelu_tanh", "quick_gelu", "relu", "silu", "identity")


@dataclass(frozen=True, slots=True)
class Case:
    """A resolved config as JSON, its float64 weights by name, the keywords of an input."""

    seed: int
    config: Drawn
    weights: dict[str, Array]
    inputs: Inputs


def random_case(seed: int) -> Case:
    """The same case for the same seed."""
    rng = np.random.default_rng(seed)
    config, lengths = random_config(rng)
    return Case(
        seed=seed,
        config=config,
        weights=weights.draw(rng, config),
        inputs=inputs.draw(rng, config, lengths),
    )


def random_config(rng: Rng) -> tuple[Drawn, Sizes]:
    """A resolved config and the length of each axis."""
    parts = one_of(rng, ("both",) * 5 + ("attention", "ffn"))
    kinds = ("none", "sinusoidal", "learned") + (() if parts == "ffn" else ("rope", "alibi"))
    kind = one_of(rng, kinds)
    lengths = sizes.draw(rng, kind)
    norm = random_norm(rng)
    config = {
        "d_model": lengths.d,
        "n_layers": one_of(rng, (1, 1, 2, 3)),
        "attention": {"kind": "none"} if parts == "ffn" else random_attention(rng, lengths),
        "ffn": {"kind": "none"} if parts == "attention" else random_ffn(rng, lengths),
        "norm": norm,
        "position": random_position(rng, kind, lengths),
        **random_readout(rng, lengths),
        "final_norm": norm["kind"] != "none" and coin(rng),
    }
    return config, lengths


def coin(rng: Rng) -> bool:
    """True half of the time."""
    return bool(rng.random() < 0.5)


def random_attention(rng: Rng, lengths: Sizes) -> Drawn:
    """Softmax attention; its scale not always 1/sqrt(d_head), its window not always narrow."""
    return {
        "kind": "softmax",
        "n_heads": lengths.h,
        "n_kv_heads": lengths.g,
        "d_head": lengths.k,
        "d_value": lengths.v,
        "scale": lengths.k**-0.5 if coin(rng) else float(rng.uniform(0.1, 1.5)),
        "mask": one_of(rng, ("causal", "full")),
        "window": one_of(rng, (None, None, None, 1, 2, 3, lengths.n + 1)),
        "bias": {letter: coin(rng) for letter in "qkvo"},
    }


def random_ffn(rng: Rng, lengths: Sizes) -> Drawn:
    """Two matrices or three, every activation."""
    kind = one_of(rng, ("mlp", "gated"))
    bias = {side: coin(rng) for side in ("in", "gate", "out")}
    return {
        "kind": kind,
        "d_ff": lengths.f,
        "activation": one_of(rng, ACTIVATIONS),
        "bias": bias | {"gate": bias["gate"] and kind == "gated"},
    }


def random_norm(rng: Rng) -> Drawn:
    """LayerNorm, RMSNorm or none, before the sublayers or after the additions."""
    kind = one_of(rng, ("layernorm", "layernorm", "rmsnorm", "rmsnorm", "none"))
    if kind == "none":
        return {"kind": "none"}
    return {
        "kind": kind,
        "placement": one_of(rng, ("pre", "post")),
        "eps": one_of(rng, (1e-5, 1e-6, 1e-12, 1e-2)),
        "gain_offset": one_of(rng, (0.0, 1.0)),
    }


def random_position(rng: Rng, kind: str, lengths: Sizes) -> Drawn:
    """The fields that apply to a kind of position."""
    if kind == "learned":
        return {"kind": kind, "n_positions": lengths.p}
    if kind == "alibi":
        return {"kind": kind, "alibi_rule": one_of(rng, ("bloom", "geometric"))}
    if kind != "rope":
        return {"kind": kind}
    whole = lengths.k - lengths.k % 2
    return {
        "kind": kind,
        "theta": one_of(rng, (10000.0, 500000.0, 100.0)),
        "rotary_dim": whole if coin(rng) else one_of(rng, range(2, whole + 1, 2)),
        "pairing": one_of(rng, ("half", "interleaved")),
    }


def random_readout(rng: Rng, lengths: Sizes) -> Drawn:
    """A vocabulary most of the time, tied or not, with a bias or not."""
    if rng.random() < 0.3:
        return {"vocab": None, "tied": False, "unembed_bias": False}
    return {"vocab": lengths.V, "tied": coin(rng), "unembed_bias": coin(rng)}
