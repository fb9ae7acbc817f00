"""A number to be read off a run: a logit, the difference of two, or a state along a direction."""

from typing import Annotated, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from schemas.base import Asked, Name, exactly_one
from schemas.nested import NUMBERS
from schemas.tensors import Posted
from schemas.tokens import Token

Vector = Annotated[npt.NDArray[np.float64], Posted(NUMBERS, range(1, 2))]
"""(i) numbers."""

Index = Annotated[int, Field(ge=-(1 << 31), le=1 << 31)]


class MeasureAsked(Asked):
    """A number of a run: a logit, less another, or a row of a stage along a direction."""

    logit: Token | None = Field(default=None, description="The token whose logit it is.")
    minus: Token | None = Field(
        default=None, description="The token whose logit is taken off; with logit alone."
    )
    stage: Name | None = Field(
        default=None, description="In the place of logit: one stage of one block, of rows."
    )
    direction: Vector | None = Field(
        default=None, description="With stage: a number for each entry of its last axis."
    )
    position: Index = Field(default=-1, description="Whose row; -1 is the last.")
    batch: Index = Field(default=0, description="Which row of a batch.")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        exactly_one(self, "logit", "stage")
        if (self.direction is None) != (self.stage is None):
            rule = "A stage is measured along a direction: stage and direction go together."
            raise PydanticCustomError("measure", "{rule}", {"rule": rule})
        if self.minus is not None and self.logit is None:
            rule = "minus takes a token's logit off that of another: give logit."
            raise PydanticCustomError("measure", "{rule}", {"rule": rule})
        return self
