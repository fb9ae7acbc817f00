"""A trace as asked for: a model, an input, what to see."""

from typing import Annotated, Literal

from pydantic import Field

from compute.types import DType, Selected
from schemas.base import Asked
from schemas.form import Formed
from schemas.inputs import InputAsked
from schemas.interventions import InterventionAsked
from schemas.measures import MeasureAsked
from schemas.model import ModelAsked
from schemas.select import SelectItem


class RunAsked(Asked):
    """A model, an input, what to see, what to change on the way."""

    model: ModelAsked = Field(description="By name, or a config with weights.")
    input: InputAsked = Field(description="One of tensor, token_ids and text; masks.")
    select: Annotated[list[SelectItem], Field(max_length=1000)] | None = Field(
        default=None,
        description="Stages to see. Default: every primary stage and attn.head_out, or a 413.",
    )
    dtype: DType = Field(default="float32", description="The arithmetic: float32 or float64.")
    identities: bool = Field(default=True, description="Check the identities of the answer.")
    interventions: Annotated[list[InterventionAsked], Field(max_length=64)] = Field(
        default=[], description="Changes of stages while the run goes on, in their order."
    )
    clean: bool = Field(
        default=True,
        description="With interventions: show the run without them too (before), and what they "
        "change (delta).",
    )
    path: Literal["total", "direct"] = Field(
        default="total",
        description="The run that `tensors` shows. total: all that follows a change is computed "
        "anew; direct: the updates of later sublayers stay as they were without it.",
    )
    measures: Annotated[list[MeasureAsked], Field(max_length=16)] = Field(
        default=[], description="Numbers to tell before the interventions and after them."
    )

    def selected_names(self) -> tuple[str, ...] | None:
        """The stages to see, where each is asked for by its name alone; else None."""
        if self.select is None or not all(item.is_a_name for item in self.select):
            return None
        return tuple(item.name for item in self.select)

    def selected(self) -> list[Selected] | None:
        """The selection as compute takes it; None asks for the default."""
        return None if self.select is None else [item.to_compute() for item in self.select]


class TraceRequest(Formed, RunAsked):
    """POST /v1/trace: run a model on an input and show its states."""
