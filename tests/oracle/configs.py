"""Seeded cases to compare by: configs that meet every option, with weights and inputs."""

from dataclasses import dataclass

import numpy as np

from oracle import inputs, parts, sizes, weights
from oracle.functions import Array
from oracle.inputs import Inputs
from oracle.parts import Drawn, coin, likely
from oracle.sizes import Rng, Sizes, one_of


@dataclass(frozen=True, slots=True)
class Case:
    """A resolved config as JSON, its float64 weights by name, the keywords of an input."""

    seed: int
    config: Drawn
    weights: dict[str, Array]
    inputs: Inputs


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Which sublayers a block has, and how they stand to one another."""

    sublayers: str
    topology: str = "sequential"
    cross: bool = False


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
    arranged = random_arrangement(rng)
    kind = random_kind(rng, arranged)
    lengths = sizes.draw(rng, kind)
    config = random_stack(rng, arranged, kind, lengths)
    config |= random_readout(rng, config, lengths)
    if config["vocab"] is not None and likely(rng, 0.3):
        config["embed_multiplier"] = float(rng.uniform(0.5, 2.5))
    if arranged.cross and likely(rng, 0.65):
        config["encoder"] = random_encoder(rng, config, lengths)
    return config, lengths


def random_arrangement(rng: Rng) -> Arrangement:
    """One sublayer or both; both one after the other, side by side, or with a memory between."""
    sublayers = one_of(rng, ("both",) * 5 + ("attention", "ffn"))
    if sublayers != "both":
        return Arrangement(sublayers)
    how = one_of(rng, ("sequential",) * 3 + ("parallel",) + ("cross",) * 2)
    if how == "cross":
        return Arrangement(sublayers, cross=True)
    return Arrangement(sublayers, topology=how)


def random_kind(rng: Rng, arranged: Arrangement) -> str:
    """A kind of position; some work inside attention. RoPE has the most to it."""
    inside = () if arranged.sublayers == "ffn" else ("rope", "rope", "rope", "alibi", "t5_bias")
    return one_of(rng, ("none", "sinusoidal", "learned", *inside))


def random_stack(rng: Rng, arranged: Arrangement, kind: str, lengths: Sizes) -> Drawn:
    """A config without its readout and encoder, which are off."""
    norm = parts.random_norm(rng, placements(arranged), can_share=arranged.topology == "parallel")
    has_norm = norm["kind"] != "none"
    has_attention, has_ffn = arranged.sublayers != "ffn", arranged.sublayers != "attention"
    config: Drawn = {
        "d_model": lengths.d,
        "n_layers": one_of(rng, (1, 1, 2, 3)),
        "attention": parts.random_attention(rng, lengths, norm["kind"])
        if has_attention
        else {"kind": "none"},
        "ffn": parts.random_ffn(rng, lengths, norm["kind"]) if has_ffn else {"kind": "none"},
        "norm": norm,
        "position": parts.random_position(rng, kind, lengths),
        "final_norm": has_norm and coin(rng),
        "topology": arranged.topology,
        "residual_multiplier": float(rng.uniform(0.1, 1.5)) if likely(rng, 0.25) else 1.0,
        "cross_attention": arranged.cross,
        "embed_norm": has_norm and likely(rng, 0.2),
        "token_types": lengths.t if likely(rng, 0.2) else 0,
        "layers": [],
        **WITHOUT_READOUT,
    }
    if has_attention and likely(rng, 0.3):
        config["layers"] = [parts.random_layer(rng, config) for _ in range(config["n_layers"])]
    return config


WITHOUT_READOUT = {
    "vocab": None,
    "tied": False,
    "unembed_bias": False,
    "embed_multiplier": 1.0,
    "readout": False,
    "mlm_head": False,
    "logit_multiplier": 1.0,
    "logit_softcap": None,
    "encoder": None,
}


def placements(arranged: Arrangement) -> tuple[str, ...]:
    """Where the norms of an arrangement may stand."""
    if arranged.topology == "parallel":
        return ("pre",)
    return ("pre", "post") if arranged.cross else ("pre", "post", "sandwich", "output")


def random_encoder(rng: Rng, decoder: Drawn, lengths: Sizes) -> Drawn:
    """A stack of its own kind, of the decoder's width; it sees both ways most of the time."""
    drawn = random_arrangement(rng)
    is_parallel = drawn.sublayers == "both" and likely(rng, 0.3)
    arranged = Arrangement(drawn.sublayers, "parallel" if is_parallel else "sequential")
    kind = random_kind(rng, arranged)
    encoder = random_stack(rng, arranged, kind, sizes.of_encoder(rng, kind, lengths))
    if arranged.sublayers != "ffn" and coin(rng):
        encoder["attention"]["mask"] = "full"
    if decoder["vocab"] is not None and likely(rng, 0.3):
        encoder["embed_multiplier"] = float(rng.uniform(0.5, 2.5))
    return encoder


def random_readout(rng: Rng, config: Drawn, lengths: Sizes) -> Drawn:
    """A vocabulary most of the time: tied or not, with a bias or not, raw or bounded, or only
    looked up."""
    if likely(rng, 0.3):
        return {}
    if likely(rng, 0.12):
        return {"vocab": lengths.V, "readout": False}
    return {
        "vocab": lengths.V,
        "readout": True,
        "tied": coin(rng),
        "unembed_bias": coin(rng),
        "mlm_head": config["norm"]["kind"] != "none" and likely(rng, 0.2),
        "logit_multiplier": float(rng.uniform(0.1, 2.0)) if likely(rng, 0.2) else 1.0,
        "logit_softcap": float(rng.uniform(5.0, 20.0)) if likely(rng, 0.2) else None,
    }
