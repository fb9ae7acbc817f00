"""A stack of blocks, from what enters the first to what leaves the last and its norm."""

from typing import Any

import numpy as np

from oracle import blocks, norms, positions
from oracle.examples import Example, Memory
from oracle.functions import Array, Config, Stages, Weights

NONE = {"kind": "none"}


def stack(
    config: Config, weights: Weights, one: Example, memory: Memory | None
) -> tuple[Stages, Array]:
    """Embedding and positions; each block in turn; the final norm. Its stages, and its output."""
    stages = embedding(config, weights, one)
    stream = entering(stages, one)
    if config.get("embed_norm", False):
        stages |= norms.norm("embed_norm", config["norm"], weights, stream)
        stream = stages["embed_norm.out"]
    for layer in range(config["n_layers"]):
        w = of_block(layer, weights)
        made = blocks.block(of_layer(config, layer), w, stream, one, memory)
        stages |= {f"blocks.{layer}.{name}": value for name, value in made.items()}
        stream = made["resid_post"]
    if config["final_norm"]:
        stages |= norms.norm("final_norm", config["norm"], weights, stream)
        stream = stages["final_norm.out"]
    return stages, stream


def below(prefix: str, weights: Weights) -> dict[str, Array]:
    """The weights of a prefix, without it."""
    own = {name: value for name, value in weights.items() if name.startswith(prefix)}
    return {name.removeprefix(prefix): value for name, value in own.items()}


def of_block(layer: int, weights: Weights) -> dict[str, Array]:
    """A block's weights without their prefix, and the table of T5's biases, which blocks share."""
    shared = {name: value for name, value in weights.items() if name == "rel_bias.W_rel"}
    return shared | below(f"blocks.{layer}.", weights)


def of_layer(config: Config, layer: int) -> Config:
    """A block's own config: the stack's, with the window, scale and rotation of its layer."""
    if not config.get("layers"):
        return config
    own = config["layers"][layer]
    attention = {**config["attention"], "window": own["window"], "scale": own["scale"]}
    return {**config, "attention": attention, "position": own_position(config["position"], own)}


def own_position(position: Config, own: Config) -> dict[str, Any]:
    """RoPE with the layer's theta and scaling; a layer without theta turns nothing."""
    if position["kind"] != "rope":
        return dict(position)
    if own["theta"] is None:
        return {"kind": "none"}
    return {**position, "theta": own["theta"], "scaling": own.get("scaling", NONE)}


def embedding(config: Config, weights: Weights, one: Example) -> Stages:
    """multiplier · token_embedding, position_embedding, type_embedding: those that exist."""
    stages: Stages = {}
    if one.rows.ndim == 1:
        multiplier = config.get("embed_multiplier", 1.0)
        stages["embed"] = np.array([multiplier * weights["embed.W_E"][token] for token in one.rows])
    kind = config["position"]["kind"]
    if kind == "learned":
        table = weights["pos_embed.W_pos"]
        stages["pos_embed"] = np.array([table[position] for position in one.position_ids])
    if kind == "sinusoidal":
        d = config["d_model"]
        stages["pos_embed"] = np.array([positions.sinusoid(p, d) for p in one.position_ids])
    if config.get("token_types", 0):
        table = weights["type_embed.W_type"]
        stages["type_embed"] = np.array([table[kind] for kind in one.token_types])
    return stages


def entering(stages: Stages, one: Example) -> Array:
    """The embedding or the posted tensor, plus positions and types, once."""
    stream = stages["embed"] if one.rows.ndim == 1 else one.rows.astype(np.float64)
    for name in ("pos_embed", "type_embed"):
        if name in stages:
            stream = stream + stages[name]
    return stream
