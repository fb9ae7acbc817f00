"""The article's forward pass, transcribed literally in float64: the reference for every stage.

One example at a time, one head at a time, one token at a time. Slow on purpose, and shares
nothing with the package it is compared with.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from oracle import blocks, examples, functions, positions
from oracle.examples import Example
from oracle.functions import Array, Config, Stages, Weights


def trace(
    config: Config,
    weights: Mapping[str, npt.ArrayLike],
    *,
    tensor: npt.ArrayLike | None = None,
    token_ids: npt.ArrayLike | None = None,
    position_ids: npt.ArrayLike | None = None,
    key_mask: npt.ArrayLike | None = None,
    attention_mask: npt.ArrayLike | None = None,
) -> Stages:
    """Every stage by full name, in order of computation; a batch axis if the input has one."""
    exact = {name: np.asarray(value, dtype=np.float64) for name, value in weights.items()}
    rows = np.asarray(token_ids if tensor is None else tensor)
    batched = rows.ndim == (2 if tensor is None else 3)
    runs = [
        stack(
            config,
            exact,
            examples.example(
                config["attention"],
                own_rows,
                examples.of_element(position_ids, element, axes=1),
                examples.of_element(key_mask, element, axes=1),
                examples.of_element(attention_mask, element, axes=2),
            ),
        )
        for element, own_rows in enumerate(rows if batched else [rows])
    ]
    if not batched:
        return runs[0]
    return {name: np.array([run[name] for run in runs]) for name in runs[0]}


def stack(config: Config, weights: Weights, one: Example) -> Stages:
    """X = embedding + position; each block in turn; the final norm; the vocabulary readout."""
    stages = embedding(config, weights, one)
    stream = entering(stages, one)
    for layer in range(config["n_layers"]):
        prefix = f"blocks.{layer}."
        own = {name: value for name, value in weights.items() if name.startswith(prefix)}
        unprefixed = {name.removeprefix(prefix): value for name, value in own.items()}
        of_block = blocks.block(config, unprefixed, stream, one)
        stages |= {prefix + name: value for name, value in of_block.items()}
        stream = of_block["resid_post"]
    if config["final_norm"]:
        stages |= blocks.norm("final_norm", config["norm"], weights, stream)
    if config["vocab"] is not None:
        stages["logits"] = readout(config, weights, stages.get("final_norm.out", stream))
    return stages


def embedding(config: Config, weights: Weights, one: Example) -> Stages:
    """token_embedding(token_ids), position_embedding(position_ids): those of them that exist."""
    stages: Stages = {}
    if one.rows.ndim == 1:
        stages["embed"] = np.array([weights["embed.W_E"][token] for token in one.rows])
    kind = config["position"]["kind"]
    if kind == "learned":
        table = weights["pos_embed.W_pos"]
        stages["pos_embed"] = np.array([table[position] for position in one.position_ids])
    if kind == "sinusoidal":
        d = config["d_model"]
        stages["pos_embed"] = np.array([positions.sinusoid(p, d) for p in one.position_ids])
    return stages


def entering(stages: Stages, one: Example) -> Array:
    """What enters block 0: the embedding or the posted tensor, plus the positions once."""
    stream = stages["embed"] if one.rows.ndim == 1 else one.rows.astype(np.float64)
    return stream + stages["pos_embed"] if "pos_embed" in stages else stream


def readout(config: Config, weights: Weights, stream: Array) -> Array:
    """logits = x W_U + b_U, W_U = W_E^T where tied; (n, d) -> (n, V)."""
    w_u = weights["embed.W_E"].T if config["tied"] else weights["unembed.W_U"]
    b_u = weights["unembed.b_U"] if config["unembed_bias"] else np.zeros(config["vocab"])
    return functions.project(stream, w_u, b_u)
