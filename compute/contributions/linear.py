"""Norms whose scale is held at what a run computed: linear maps, and a bias apart."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from compute.block_weights import NormWeights
from compute.types import Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frozen:
    """(x - mean(x)) / scale · gain, or x / scale · gain: scale (R, 1), gain (d), bias (d) or None.

    Linear in x, so the parts of a row go through one by one; the bias is a part of its own.
    """

    name: str
    centres: bool
    scale: Array
    gain: Array
    bias: Array | None

    def push(self, parts: Array) -> Array:
        """The parts behind the norm: (R, p, d) -> same, in float64."""
        centred = parts - parts.mean(axis=-1, keepdims=True) if self.centres else parts
        return centred / self.scale[:, None, :] * self.gain

    def pull(self, direction: Array) -> Array:
        """The direction before the norm: x · pull(u) = push(x) · u. (R, d) -> same."""
        weighed = direction * self.gain / self.scale
        return weighed - weighed.mean(axis=-1, keepdims=True) if self.centres else weighed

    def bound(self, size: Array) -> Array:
        """How large the terms behind the norm are, of terms this large: (R, d) -> same."""
        mean = size.mean(axis=-1, keepdims=True) if self.centres else 0.0
        bias = 0.0 if self.bias is None else np.abs(self.bias)
        return (size + mean) / self.scale * np.abs(self.gain) + bias


def frozen(name: str, kind: str, stages: Mapping[str, Array], w: NormWeights) -> Frozen:
    """The norm of a name (`blocks.0.norm1_post`) with its scale at the rows of a run."""
    return Frozen(
        name=name,
        centres=kind == "layernorm",
        scale=stages[f"{name}.scale"].astype(np.float64),
        gain=w.gain.astype(np.float64),
        bias=None if w.bias is None else w.bias.astype(np.float64),
    )
