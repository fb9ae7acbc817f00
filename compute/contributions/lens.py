"""The logit lens: each state along the stream read out by itself, its own norm recomputed.

nostalgebraist 2020. The last state's reading is the model's own logits.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from compute.config import ModelConfig, reads_out
from compute.contributions.readout import Direction
from compute.contributions.seen import Seen
from compute.contributions.sublayers import of_block
from compute.contributions.target import Target, states_after
from compute.model import read_out_for
from compute.norms import NORMALIZE
from compute.types import Array, Equations, Ints
from compute.weights import ModelWeights

_SLAB = 1 << 20
"""Logits that are alive at once."""

_SHOWN = 5


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """A state read out at R rows: the value along the direction (R), the largest logits.

    top: token ids (R, k), largest first; logits and probabilities (R, k); None without a readout.
    """

    state: str
    value: Array | None
    top: Ints | None
    logits: Array | None
    probabilities: Array | None


def states_to(target: Target, config: ModelConfig) -> list[str]:
    """The states along the stream up to the target, the one that enters the first block first."""
    names = ["blocks.0.resid_pre"]
    for layer in range(config.n_layers):
        names += states_after(of_block(config, layer, ""), config)
    last = target.name if target.is_state else names[-1]
    same = {f"blocks.{at + 1}.resid_pre": f"blocks.{at}.resid_post" for at in range(len(names))}
    return names[: names.index(same.get(last, last)) + 1]


def read(name: str, direction: Direction | None, seen: Seen) -> Read:
    """A state of the run, its final norm recomputed, read out: (R, d) -> (R, V), a few rows at
    a time, in the run's dtype."""
    config, w, state = seen.config, seen.weights, seen.stages[name]
    step = max(1, _SLAB // max(1, config.vocab or config.d_model))
    pieces = []
    for start in range(0, len(state), step):
        seen.check()
        pieces.append(_piece(state[start : start + step], direction, config, w))
    joined = {key: _joined([piece[key] for piece in pieces]) for key in pieces[0]}
    top = joined["top"]
    return Read(
        state=name,
        value=joined["value"],
        top=None if top is None else top.astype(np.int64),
        logits=joined["logits"],
        probabilities=joined["probabilities"],
    )


def changes(names: list[str], reads: Mapping[str, Read]) -> Array:
    """The value of the first state, and what each step to the next changes it by: (R, states).

    They telescope: their sum is the value of the last state.
    """
    values = np.stack([_value(reads[name]) for name in names], axis=1)
    return np.concatenate([values[:, :1], np.diff(values, axis=1)], axis=1)


def _value(read: Read) -> Array:
    assert read.value is not None  # noqa: S101 - there is a direction
    return read.value


def _piece(
    state: Array, direction: Direction | None, config: ModelConfig, w: ModelWeights
) -> dict[str, Array | None]:
    normed = NORMALIZE[config.norm.kind](state, w.final_norm) if config.final_norm else state
    found: dict[str, Array | None] = dict.fromkeys(("value", "top", "logits", "probabilities"))
    if direction is not None and direction.vector is not None:
        found["value"] = normed.astype(np.float64) @ direction.vector.astype(np.float64)
    if reads_out(config):
        logits = _result(read_out_for(config)(np.array(normed), w))
        found |= _largest(logits)
        if direction is not None and direction.token is not None:
            found["value"] = _difference(logits, direction)
    return found


def _difference(logits: Array, direction: Direction) -> Array:
    value = logits[:, direction.token].astype(np.float64)
    return value if direction.minus is None else value - logits[:, direction.minus]


def _largest(logits: Array) -> dict[str, Array | None]:
    """The largest logits, their tokens and probabilities; of equals the lower id first."""
    count = min(_SHOWN, logits.shape[-1])
    some = np.sort(np.argpartition(-logits, count - 1, axis=-1)[:, :count], axis=-1)
    chosen = np.take_along_axis(logits, some, axis=-1)
    order = np.argsort(-chosen, axis=-1, kind="stable")
    top = np.take_along_axis(some, order, axis=-1)
    shown = np.take_along_axis(chosen, order, axis=-1).astype(np.float64)
    highest = shown[:, :1]
    total = np.exp(logits - highest, dtype=np.float64).sum(axis=-1, keepdims=True)
    return {"top": top, "logits": shown, "probabilities": np.exp(shown - highest) / total}


def _joined(found: list[Array | None]) -> Array | None:
    there = [piece for piece in found if piece is not None]
    return np.concatenate(there) if there else None


def _result(equations: Equations) -> Array:
    """What an equation returns, all its stages let go by."""
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            sent = next(equations)[1]
            while True:
                sent = equations.send(sent)[1]
        except StopIteration as end:
            return end.value
