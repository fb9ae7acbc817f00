"""A permutation as asked for: of which rows of which input of which model, and what to compare."""

from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from compute.types import DType, Selected
from schemas.base import Asked, Name
from schemas.inputs import InputAsked
from schemas.model import ModelAsked
from schemas.nested import WHOLE_NUMBERS
from schemas.tensors import Posted

Order = Annotated[npt.NDArray[np.int64], Posted(WHOLE_NUMBERS, range(1, 2))]
"""(n) whole numbers."""


class EquivarianceRequest(Asked):
    """POST /v1/equivariance: permute the rows of an input, and see which stages permute."""

    model: ModelAsked = Field(description="By name, or a config with weights.")
    input: InputAsked = Field(description="One of tensor, token_ids and text; masks.")
    permutation: Order | None = Field(
        default=None,
        description="Row i of the permuted input is row permutation[i]: each row once. "
        "Default: 1, 2, …, n - 1, 0.",
    )
    select: Annotated[list[Name], Field(min_length=1, max_length=1000)] | None = Field(
        default=None,
        description="Stages to compare, whole, by name or alias. Default: what enters the first "
        "block, every pattern, attn_out, ffn_out and resid_post, and the logits.",
    )
    dtype: DType = Field(default="float64", description="The arithmetic: float32 or float64.")

    def selected(self) -> list[Selected] | None:
        """The selection as compute takes it; None asks for the default."""
        return None if self.select is None else [Selected(name=name) for name in self.select]
