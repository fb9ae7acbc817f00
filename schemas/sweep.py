"""A sweep as asked for: one change at each cell of a grid, and the number to read off each run."""

from typing import Annotated, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from compute.errors import QuestionError, refuse_if
from compute.types import DType, Intervened, InterventionOp
from schemas.base import Indices, Name, at_most
from schemas.form import Formed
from schemas.inputs import InputAsked
from schemas.interventions import Chosen, Slice
from schemas.measures import MeasureAsked
from schemas.model import ModelAsked
from schemas.tensors import cast, overflows

Side = Literal["clean", "corrupted"]


class SweepRequest(Formed):
    """POST /v1/sweep: change a stage at each cell of a grid and tell what a measure becomes."""

    model: ModelAsked = Field(description="By name, or a config with weights.")
    clean: InputAsked = Field(description="The input that the model gets right.")
    corrupted: InputAsked | None = Field(
        default=None,
        description="patch: an input of the same shape that it gets wrong; no other op takes it.",
    )
    stage: Name = Field(
        description="The stage to change, by name or alias; a bare one means every block."
    )
    op: InterventionOp = Field(
        default="patch",
        description="patch: the slice takes the other input's values; or zero, scale, add, set, "
        "mean, as in an intervention.",
    )
    value: Slice | None = Field(
        default=None,
        description="scale, add and set: one number, or numbers in the shape of a cell's slice.",
    )
    mean_over: Annotated[list[Chosen], Field(min_length=1, max_length=8)] | None = Field(
        default=None,
        description="mean: the axes it is taken over. Default: the stage's positions.",
    )
    base: Side | None = Field(
        default=None,
        description="The input that is run at each cell; the other one brings a patch its values. "
        "Default: corrupted for patch (denoising), else clean.",
    )
    over: Annotated[list[Chosen], Field(min_length=1, max_length=3)] = Field(
        description="The axes of the grid, in order: block, and axis words of the stage."
    )
    where: Annotated[dict[Chosen, Indices], BeforeValidator(at_most(16))] = Field(
        default={},
        description="Axis word, or block -> indices: of an axis of the grid its entries, of "
        "another what of it is changed in each cell. An axis left out is taken whole.",
    )
    path: Literal["total", "direct"] = Field(
        default="total",
        description="total: all that follows a change is computed anew; direct: the updates of "
        "later sublayers stay as they were without it.",
    )
    measure: MeasureAsked = Field(description="The number that is read off each run.")
    dtype: DType = Field(default="float32", description="The arithmetic: float32 or float64.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        patch = self.op == "patch"
        if patch != (self.corrupted is not None):
            _refuse("corrupted is what patch takes: give it with patch, and with nothing else.")
        if self.base == "corrupted" and not patch:
            _refuse("Without corrupted the base is clean.")
        if len(set(self.over)) < len(self.over):
            _refuse("Each axis stands once in over.")
        return self

    def intervened(self) -> Intervened:
        """The change as compute takes it; a QuestionError where a value overflows the dtype."""
        value = None if self.value is None else cast(self.value, self.dtype)
        refuse_if(QuestionError, [] if value is None else overflows(np.asarray(value), ("value",)))
        return Intervened(
            stage=self.stage,
            op=self.op,
            where={str(word): tuple(indices) for word, indices in self.where.items()},
            value=value,
            over=tuple(self.mean_over or ()),
            source=0 if self.op == "patch" else None,
        )

    @property
    def run_at_each_cell(self) -> Side:
        """Which input is run at each cell."""
        return self.base or ("corrupted" if self.op == "patch" else "clean")


def _refuse(rule: str) -> None:
    raise PydanticCustomError("sweep", "{rule}", {"rule": rule})
