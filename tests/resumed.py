"""The reference taken up again in the middle, from states that were changed by hand."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from oracle import blocks, examples, forward, functions, norms, stacks
from oracle.blocks import Block, Sublayer, computed
from oracle.configs import Case
from oracle.examples import Example, Memory
from oracle.functions import Array

GIVEN = ("tensor", "token_ids", "position_ids", "key_mask", "attention_mask", "token_types")


def batched(case: Case) -> bool:
    """Whether the input has a batch axis."""
    if "tensor" in case.inputs:
        return bool(case.inputs["tensor"].ndim == 3)
    return bool(case.inputs["token_ids"].ndim == 2)


def each(case: Case, *states: Array) -> list[tuple[Array, ...]]:
    """The states of each sequence: all there is, or row by row of the batch."""
    return list(zip(*states, strict=True)) if batched(case) else [states]


def joined(case: Case, rows: list[dict[str, Array]]) -> dict[str, Array]:
    """Stages of each sequence as stages of the input."""
    if not batched(case):
        return rows[0]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def from_block(case: Case, layer: int, stream: Array) -> dict[str, Array]:
    """Every stage from a block on, by full name, of the stream that enters it."""
    rows = [_above(case, layer, own, at) for at, (own,) in enumerate(each(case, stream))]
    return joined(case, rows)


def from_top(case: Case, stream: Array) -> dict[str, Array]:
    """The final norm and what is read out of it, of the stream that leaves the last block."""
    return from_block(case, case.config["n_layers"], stream)


def through_norm(case: Case, name: str, stream: Array) -> Array:
    """A norm of a block, by its full name with its stack, of a stream; itself without a norm."""
    prefix, _, local = name.rpartition(".")
    made = norms.norm(
        local, case.config["norm"], stacks.below(f"{prefix}.", case.weights), flat(stream)
    )
    return made[f"{local}.out"].reshape(stream.shape) if made else stream


def flat(rows: Array) -> Array:
    """(..., d) -> (rows, d)."""
    return rows.reshape(-1, rows.shape[-1])


def ffn_of(case: Case, layer: int, read: Array) -> Array:
    """What an ffn makes of the rows it reads, before norm and multiplier: (..., d) -> same."""
    config = stacks.of_layer(case.config, layer)
    one = _inputs(case, 0)[0]
    of = Block(config, stacks.of_block(layer, case.weights), one, None)
    return computed(of, Sublayer("ffn", "norm2", "resid_post"), flat(read))[1].reshape(read.shape)


def _inputs(case: Case, at: int) -> tuple[Example, Memory | None]:
    given = {name: case.inputs.get(name) for name in GIVEN}
    memory = case.inputs.get("memory")
    other = None if memory is None else examples.example(memory, at)
    exact = {name: np.asarray(value, np.float64) for name, value in case.weights.items()}
    return examples.example(given, at), forward.remembered(case.config, exact, other)[1]


def _above(case: Case, layer: int, stream: Array, at: int) -> dict[str, Array]:
    config, weights = case.config, case.weights
    one, memory = _inputs(case, at)
    stages: dict[str, Array] = {}
    for block in range(layer, config["n_layers"]):
        made = _block(config, weights, block, stream, one, memory)
        stages |= {f"blocks.{block}.{name}": value for name, value in made.items()}
        stream = made["resid_post"]
    if config["final_norm"]:
        stages |= norms.norm("final_norm", config["norm"], weights, stream)
        stream = stages["final_norm.out"]
    if config.get("mlm_head", False):
        stages |= forward.mlm_head(config, weights, stream)
        stream = stages["mlm_norm.out"]
    if config["vocab"] is not None and config.get("readout", True):
        stages["logits"] = forward.readout(config, weights, stream)
    return stages


def _block(
    config: Mapping[str, Any],
    weights: functions.Weights,
    layer: int,
    stream: npt.NDArray[np.float64],
    one: Example,
    memory: Memory | None,
) -> functions.Stages:
    own = stacks.of_block(layer, weights)
    return blocks.block(stacks.of_layer(config, layer), own, stream, one, memory)
