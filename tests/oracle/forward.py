"""The article's forward pass, transcribed literally in float64: the reference for every stage.

One example at a time, one head at a time, one token at a time. Slow on purpose, and shares
nothing with the package it is compared with.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from oracle import examples, functions, norms, stacks
from oracle.examples import Example, Memory
from oracle.functions import Array, Config, Stages, Weights

Given = Mapping[str, Any]
"""An input by keyword: those of `trace` that it has."""


def trace(
    config: Config,
    weights: Mapping[str, npt.ArrayLike],
    *,
    tensor: npt.ArrayLike | None = None,
    token_ids: npt.ArrayLike | None = None,
    position_ids: npt.ArrayLike | None = None,
    key_mask: npt.ArrayLike | None = None,
    attention_mask: npt.ArrayLike | None = None,
    token_types: npt.ArrayLike | None = None,
    memory: Given | None = None,
) -> Stages:
    """Every stage by full name, in order of computation; a batch axis if the input has one.

    memory: the same keywords; an encoder's input, or the rows that cross-attention reads.
    """
    exact = {name: np.asarray(value, dtype=np.float64) for name, value in weights.items()}
    given = {
        "tensor": tensor,
        "token_ids": token_ids,
        "position_ids": position_ids,
        "key_mask": key_mask,
        "attention_mask": attention_mask,
        "token_types": token_types,
    }
    rows = np.asarray(token_ids if tensor is None else tensor)
    batched = rows.ndim == (2 if tensor is None else 3)
    runs = [
        model(
            config,
            exact,
            examples.example(given, element),
            None if memory is None else examples.example(memory, element),
        )
        for element in range(len(rows) if batched else 1)
    ]
    if not batched:
        return runs[0]
    return {name: np.array([run[name] for run in runs]) for name in runs[0]}


def model(config: Config, weights: Weights, one: Example, other: Example | None) -> Stages:
    """The encoder, where there is one; the stack; the vocabulary readout."""
    stages, memory = remembered(config, weights, other)
    of_stack, stream = stacks.stack(config, weights, one, memory)
    stages |= of_stack
    if config.get("mlm_head", False):
        stages |= mlm_head(config, weights, stream)
        stream = stages["mlm_norm.out"]
    if config["vocab"] is not None and config.get("readout", True):
        stages["logits"] = readout(config, weights, stream)
    return stages


def remembered(
    config: Config, weights: Weights, other: Example | None
) -> tuple[Stages, Memory | None]:
    """What cross-attention reads: the rows that were posted, or what the encoder makes of its
    input; and the encoder's stages."""
    if other is None or not config.get("cross_attention", False):
        return {}, None
    if config.get("encoder") is None:
        return {}, Memory(other.rows.astype(np.float64), other.key_mask)
    own = stacks.below("encoder.", weights)
    if "embed.W_E" in weights:
        own["embed.W_E"] = weights["embed.W_E"]
    stages, rows = stacks.stack(config["encoder"], own, other, None)
    return {f"encoder.{name}": value for name, value in stages.items()}, Memory(
        rows, other.key_mask
    )


def mlm_head(config: Config, weights: Weights, stream: Array) -> Stages:
    """hidden = act(x W + b), and its norm; (n, d) -> (n, p)."""
    up = functions.project(stream, weights["mlm_head.W"], weights["mlm_head.b"])
    hidden = functions.activate(config["ffn"].get("activation", "gelu"), up)
    stages = {"mlm_head.up": up, "mlm_head.hidden": hidden}
    return stages | norms.norm("mlm_norm", config["norm"], weights, hidden)


def readout(config: Config, weights: Weights, stream: Array) -> Array:
    """softcap(multiplier (x W_U + b_U)), W_U = W_E^T where tied; (n, d) -> (n, V)."""
    w_u = weights["embed.W_E"].T if config["tied"] else weights["unembed.W_U"]
    b_u = weights["unembed.b_U"] if config["unembed_bias"] else np.zeros(config["vocab"])
    multiplier, cap = config.get("logit_multiplier", 1.0), config.get("logit_softcap")
    return np.array(
        [
            [functions.softcap(float(multiplier * logit), cap) for logit in row]
            for row in functions.project(stream, w_u, b_u)
        ]
    )
