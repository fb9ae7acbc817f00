"""Derivatives as asked for: one state by another, or a number of a run by some of its stages."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from compute.types import DType, Selected
from schemas.base import Name, exactly_one
from schemas.form import Formed
from schemas.inputs import InputAsked
from schemas.measures import Index, MeasureAsked
from schemas.model import ModelAsked
from schemas.select import SelectItem

Part = Literal["matrix", "singular_values", "norms", "identity_part", "factors"]
SHOWN: tuple[Part, ...] = ("matrix", "singular_values", "norms")
PARTS: tuple[Part, ...] = (*SHOWN, "identity_part", "factors")

_OF_A_PAIR = ("by", "position", "source", "batch", "ask")


class JacobianRequest(Formed):
    """POST /v1/jacobian: exact derivatives of a run."""

    model: ModelAsked = Field(description="By name, or a config with weights.")
    input: InputAsked = Field(description="One of tensor, token_ids and text; masks.")
    of: Name | None = Field(
        default=None, description="The stage to differentiate: one row of numbers a position."
    )
    by: Name | None = Field(
        default=None, description="With of: the earlier stage that it is differentiated by."
    )
    position: Index | None = Field(
        default=None, description="With of: whose row of it; -1 is the last, and the default."
    )
    source: Index | None = Field(
        default=None, description="With of: the row of `by`. Default: the same position."
    )
    batch: Index | None = Field(
        default=None, description="With of: which row of a batch. Default: 0."
    )
    ask: Annotated[list[Part], Field(min_length=1, max_length=len(PARTS))] | None = Field(
        default=None,
        description="With of: how a matrix is shown (matrix, singular_values, norms), and whether "
        "I + dF/dx is told apart (identity_part) and post-norm's factors (factors). Default: all.",
    )
    measure: MeasureAsked | None = Field(
        default=None, description="In the place of of: the number to differentiate."
    )
    gradients: Annotated[list[SelectItem], Field(min_length=1, max_length=1000)] | None = Field(
        default=None,
        description="With measure: the stages to differentiate it by, as in a trace's select.",
    )
    dtype: DType = Field(default="float64", description="The arithmetic: float32 or float64.")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        exactly_one(self, "of", "measure")
        if (self.of is None) != (self.by is None):
            _refuse("A state is differentiated by an earlier one: of and by go together.")
        if (self.measure is None) != (self.gradients is None):
            _refuse("A measure is differentiated by stages: measure and gradients go together.")
        if self.of is None and any(getattr(self, name) is not None for name in _OF_A_PAIR):
            _refuse("position, source, batch and ask belong to of.")
        if any(item.summary for item in self.gradients or ()):
            _refuse("A gradient is told whole: summary is of a trace.")
        self._check_parts()
        return self

    def _check_parts(self) -> None:
        asked = self.parts
        if len(set(asked)) < len(asked):
            _refuse("Each part stands once in ask.")
        if not set(asked) & set(SHOWN):
            _refuse("Ask for one of matrix, singular_values and norms, or nothing is shown.")

    @property
    def parts(self) -> tuple[Part, ...]:
        """What is asked for."""
        return PARTS if self.ask is None else tuple(self.ask)

    def selected(self) -> list[Selected]:
        """The stages as compute takes them."""
        return [item.to_compute() for item in self.gradients or ()]


def _refuse(rule: str) -> None:
    raise PydanticCustomError("jacobian", "{rule}", {"rule": rule})
