"""How a part is read as a logit: the final norm's scale held at what the run computed.

With the scale held the way from a state to a logit is linear, so each part of the state has a
logit of its own, a dot product with one direction, and these add up to the logit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compute import stages
from compute.block_weights import NormWeights
from compute.config import ModelConfig
from compute.contributions.linear import Frozen, frozen
from compute.contributions.seen import Seen
from compute.types import Array
from compute.weights import ModelWeights


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Direction:
    """What parts are read along: a token's logit, or over another's, or a vector (d).

    after_norm: the vector is of the final norm's output; else of the stream.
    """

    token: int | None = None
    minus: int | None = None
    vector: Array | None = None
    after_norm: bool = False

    @property
    def is_read_out(self) -> bool:
        """Whether the final norm stands before it."""
        return self.vector is None or self.after_norm


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A direction at R rows: along (R, d), and what is added to it whatever the state is.

    constants: a bias's name -> what it gives, (R). size: how large the terms of a logit are, (R).
    """

    along: Array
    constants: Mapping[str, Array]
    size: Array


def column(direction: Direction, config: ModelConfig, w: ModelWeights) -> Array:
    """What the final norm's output is multiplied by, (d): multiplier · (W_U[:, t] - W_U[:, u])."""
    if direction.vector is not None:
        return direction.vector.astype(np.float64)
    assert direction.token is not None  # noqa: S101 - a direction has a vector or a token
    column = w.W_U[:, direction.token].astype(np.float64)
    if direction.minus is not None:
        column = column - w.W_U[:, direction.minus]
    return config.logit_multiplier * column


def offset(direction: Direction, config: ModelConfig, w: ModelWeights) -> float | None:
    """multiplier · (b_U[t] - b_U[u]), or None where there is no b_U or no token."""
    if w.b_U is None or direction.token is None:
        return None
    minus = 0.0 if direction.minus is None else float(w.b_U[direction.minus])
    return config.logit_multiplier * (float(w.b_U[direction.token]) - minus)


def needs(norms: Sequence[str], last: bool, config: ModelConfig) -> set[str]:
    """The stages that a reading needs; of the last state also what the readout reads."""
    return {f"{norm}.scale" for norm in norms} | ({read_of(config)} if last else set())


def read_of(config: ModelConfig) -> str:
    """The stage that the readout, or the head before it, reads."""
    return "final_norm.out" if config.final_norm else f"blocks.{config.n_layers - 1}.resid_post"


def reading(direction: Direction, norms: Sequence[str], state: Array, seen: Seen) -> Reading:
    """The direction before the norms, and the biases behind them, of a state (R, d)."""
    read = column(direction, seen.config, seen.weights)
    along, size = np.broadcast_to(read, state.shape), np.abs(state)
    held = [_held(norm, seen) for norm in norms]
    constants = _offset(direction, seen, len(state))
    for norm in reversed(held):
        if norm.bias is not None:
            constants = {f"{norm.name}.bias": along @ norm.bias, **constants}
        along = norm.pull(along)
    for norm in held:
        size = norm.bound(size)
    of_bias = sum((np.abs(value) for value in constants.values()), np.zeros(len(state)))
    return Reading(along, constants, size @ np.abs(read) + of_bias)


def value(direction: Direction, seen: Seen) -> Array:
    """The logit, or the difference, before any cap, from what the readout reads: (R)."""
    read = column(direction, seen.config, seen.weights)
    return seen[read_of(seen.config)] @ read + (offset(direction, seen.config, seen.weights) or 0.0)


def plain(direction: Direction, state: Array) -> Reading:
    """A vector of the stream: nothing stands before it."""
    assert direction.vector is not None  # noqa: S101 - a token is read behind the final norm
    vector = direction.vector.astype(np.float64)
    return Reading(np.broadcast_to(vector, state.shape), {}, np.abs(state) @ np.abs(vector))


def _offset(direction: Direction, seen: Seen, rows: int) -> dict[str, Array]:
    found = offset(direction, seen.config, seen.weights)
    return {} if found is None else {"unembed.b_U": np.full(rows, found)}


def _held(name: str, seen: Seen) -> Frozen:
    return frozen(name, seen.config.norm.kind, seen.stages, _weights(name, seen))


def _weights(name: str, seen: Seen) -> NormWeights:
    layer = stages.layer_of(name)
    if layer is None:
        return seen.weights.final_norm
    block = seen.weights.blocks[layer]
    by_norm = {"norm1": block.norm1, "norm_cross": block.norm_cross, "norm2": block.norm2}
    return by_norm[stages.local_name(name)]
