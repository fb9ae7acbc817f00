"""A tensor of an answer read back: an array, with names for its axes and what is left of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from compute import stages
from compute.types import AXES
from schemas.answers import TensorAnswer
from service.picture.words import Floats

LETTERS = {word: letter for letter, word in AXES.items()}
MEASURES = ("norm", "rms", "mean", "min", "max")
PATTERNS = ("attn.pattern", "cross.pattern")
_PARTS = ("head", "kv_head", "choice")
_PLACES = ("position", "key_position", "source_position")
_FINITE = {"-inf": -np.inf, "+inf": np.inf, "nan": np.nan}


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A stage of an answer; of a summary the last axis is `measure`.

    indices: for each axis, which entries of it these are. sliced: the axes that were cut.
    """

    name: str
    symbol: str
    axes: tuple[str, ...]
    indices: Mapping[str, tuple[int, ...]]
    sliced: frozenset[str]
    values: Floats

    @property
    def stage(self) -> str:
        """The name without its stack and block."""
        return stages.local_name(self.name)

    @property
    def block(self) -> str:
        """What stands before that: `encoder.blocks.0.`."""
        return self.name.removesuffix(self.stage)

    @property
    def summed(self) -> bool:
        """Rows are told by their measures."""
        return self.axes[-1] == "measure"

    @property
    def part(self) -> str | None:
        """What it is split into: heads, or a token's chosen experts; None: nothing."""
        return next((axis for axis in _PARTS if axis in self.axes[:-1]), None)

    @property
    def parts(self) -> tuple[int, ...]:
        """Which parts these are."""
        return () if self.part is None else self.indices[self.part]

    def split(self, values: Floats) -> Floats:
        """The values, or what has their leading axes, with the parts in front."""
        front = 0 if self.part is None else self.axes.index(self.part)
        return np.moveaxis(values, front, 0)

    @property
    def place(self) -> str | None:
        """The axis its rows stand for; None where a summary left none."""
        return next((axis for axis in _PLACES if axis in self.axes), None)

    @property
    def rows(self) -> tuple[int, ...]:
        """The positions of the rows."""
        return () if self.place is None else self.indices[self.place]


def tensor(name: str, told: TensorAnswer) -> Tensor:
    """A tensor with its numbers as an array, those that JSON has no number for too."""
    axes, index = tuple(told["axes"]), told.get("index", {})
    if "summary" in told:
        summary = cast(Mapping[str, object], told["summary"])
        values = np.stack([np.array(summary[name], np.float64) for name in MEASURES], axis=-1)
        axes = (*axes, "measure")
    else:
        values = _restored(told)
    lengths = zip(axes, values.shape, strict=True)
    indices = {axis: tuple(index.get(axis, range(length))) for axis, length in lengths}
    return Tensor(name, told["symbol"] or "", axes, indices, frozenset(index), values)


def of_row(one: Tensor, at: int) -> Tensor:
    """What a tensor has of one row of the batch."""
    indices = {axis: index for axis, index in one.indices.items() if axis != "batch"}
    values = one.values[one.indices["batch"].index(at)]
    return replace(one, axes=one.axes[1:], indices=indices, values=values)


def _restored(told: TensorAnswer) -> Floats:
    values = np.array(told["data"], np.float64)
    nonfinite: object = told.get("nonfinite", {})
    if nonfinite == "-inf":
        return np.where(np.isnan(values), -np.inf, values)
    flat = values.reshape(-1)
    for kind, runs in cast(Mapping[str, list[list[int]]], nonfinite).items():
        for offset, length in runs:
            flat[offset : offset + length] = _FINITE[kind]
    return values
