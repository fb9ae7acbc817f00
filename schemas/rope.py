"""Rotations as asked for: at which positions, and of one pair, a spectrum or a model's block."""

from typing import Annotated, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from compute.config import Pairing, PositionConfig
from schemas.base import Asked, exactly_one
from schemas.bounds import Multiplier, Size, Theta
from schemas.config import ConfigAsked
from schemas.form import Formed
from schemas.model import ModelAsked
from schemas.nested import NUMBERS
from schemas.positions import PositionAsked, RopeScalingAsked
from schemas.sublayers import AttentionAsked, FfnAsked, NormAsked
from schemas.tensors import Posted

MOST_POSITIONS = 1024
_LARGEST_POSITION = 1 << 31

Position = Annotated[int, Field(ge=0, le=_LARGEST_POSITION)]
Block = Annotated[int, Field(ge=-(1 << 31), le=1 << 31)]
QueryAndKey = Annotated[npt.NDArray[np.float64], Posted(NUMBERS, range(2, 3))]
"""(2, k) numbers."""


class RopePairAsked(Asked):
    """One pair of coordinates, turned by one angle a position."""

    degrees_per_position: Multiplier | None = Field(default=None, description="The angle.")
    radians_per_position: Multiplier | None = Field(
        default=None, description="The angle in radians, in the place of degrees."
    )

    @model_validator(mode="after")
    def _one_unit(self) -> Self:
        exactly_one(self, "degrees_per_position", "radians_per_position")
        return self


class RopeSpectrumAsked(Asked):
    """Every pair of a head, as a config's `position` says them with kind rope."""

    d_head: Size = Field(description="Coordinates of a query or key.")
    theta: Theta = Field(
        default=10000.0,
        description="Pair i turns by theta^(-2i / rotary_dim) radians a position.",
    )
    rotary_dim: Size | None = Field(
        default=None, description="How many coordinates turn. Default: d_head."
    )
    pairing: Pairing = Field(
        default="half",
        description="half pairs i with i + rotary_dim / 2; interleaved pairs 2i with 2i + 1.",
    )
    scaling: RopeScalingAsked = Field(
        default=RopeScalingAsked(), description="How the frequencies are stretched."
    )

    def to_compute(self) -> PositionConfig:
        """The position resolved; a ConfigError as of a config that has it."""
        config = ConfigAsked(
            d_model=1,
            attention=AttentionAsked(n_heads=1, d_head=self.d_head),
            ffn=FfnAsked(kind="none"),
            norm=NormAsked(kind="none"),
            position=PositionAsked(
                kind="rope",
                theta=self.theta,
                rotary_dim=self.rotary_dim,
                pairing=self.pairing,
                scaling=self.scaling,
            ),
        )
        return config.to_compute().position


class RopeRequest(Formed):
    """POST /v1/rope: turn a query and a key to positions, and show angles and dot products."""

    positions: Annotated[list[Position], Field(min_length=1, max_length=MOST_POSITIONS)] = Field(
        description="Whole numbers. With two, the first is the query's and the second the key's."
    )
    pair: RopePairAsked | None = Field(default=None, description="One pair, by its angle.")
    spectrum: RopeSpectrumAsked | None = Field(default=None, description="Every pair of a head.")
    model: ModelAsked | None = Field(
        default=None, description="The spectrum that a block of a model has. Weights are not read."
    )
    block: Block | None = Field(
        default=None, description="With model: which block; -1 is the last. Default: 0."
    )
    vectors: QueryAndKey | None = Field(
        default=None,
        description="A query and a key: two numbers each for a pair, else d_head each. "
        "Default: (1, 0) in every pair.",
    )

    @model_validator(mode="after")
    def _one_rotation(self) -> Self:
        exactly_one(self, "pair", "spectrum", "model")
        if self.block is not None and self.model is None:
            raise PydanticCustomError("block", "{rule}", {"rule": "block belongs to model."})
        if self.vectors is not None and len(self.vectors) != 2:
            rule = "vectors is a query and a key."
            raise PydanticCustomError("vectors", "{rule}", {"rule": rule})
        return self
