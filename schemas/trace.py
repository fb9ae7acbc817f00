"""A trace as asked for: a model, an input, what to see."""

from typing import Annotated

from pydantic import Field

from compute.types import DType, Selected
from schemas.base import Asked
from schemas.inputs import InputAsked
from schemas.model import ModelAsked
from schemas.select import SelectItem


class TraceRequest(Asked):
    """POST /v1/trace: run a model on an input and show its states."""

    model: ModelAsked = Field(description="By name, or a config with weights.")
    input: InputAsked = Field(description="One of tensor, token_ids and text; masks.")
    select: Annotated[list[SelectItem], Field(max_length=1000)] | None = Field(
        default=None,
        description="Stages to see. Default: every primary stage and attn.head_out, or a 413.",
    )
    dtype: DType = Field(default="float32", description="The arithmetic: float32 or float64.")
    identities: bool = Field(default=True, description="Check the identities of the answer.")

    def selected(self) -> list[Selected] | None:
        """The selection as compute takes it; None asks for the default."""
        return None if self.select is None else [item.to_compute() for item in self.select]
