"""Interventions as asked for: a slice of a stage, and what becomes of it."""

from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field

from compute.errors import InterventionError, refuse_if
from compute.types import DType, Intervened, InterventionOp
from schemas.base import Asked, Indices, Name, at_most
from schemas.inputs import InputAsked
from schemas.nested import NUMBERS
from schemas.tensors import Posted, cast, overflows

Chosen = Literal[
    "block",
    "batch",
    "position",
    "key_position",
    "source_position",
    "head",
    "kv_head",
    "d_model",
    "d_head",
    "d_value",
    "d_ff",
    "expert",
    "choice",
    "d_mlm_head",
    "vocabulary",
]
"""What a slice is chosen by: blocks, and the axes of stages."""

Slice = Annotated[npt.NDArray[np.float64], Posted(NUMBERS, range(5))]
"""One number, or numbers nested up to four deep."""


class InterventionAsked(Asked):
    """A change of a slice of a stage, made while the run goes on; changes are made in order."""

    stage: Name = Field(
        description="A stage's name or alias, with * for any part; a bare one means every block."
    )
    op: InterventionOp = Field(
        description="zero; scale (multiply by value); add; set; mean: of the stage over some axes; "
        "patch: the same slice of another input's run."
    )
    where: Annotated[dict[Chosen, Indices], BeforeValidator(at_most(16))] = Field(
        default={},
        description="Axis word -> indices, negative ones from the end; an axis left out is taken "
        "whole. block: of the blocks that the stage names, which.",
    )
    value: Slice | None = Field(
        default=None,
        description="scale, add and set: one number, or numbers in the slice's shape.",
    )
    over: Annotated[list[Chosen], Field(min_length=1, max_length=8)] | None = Field(
        default=None,
        description="mean: the axes it is taken over. Default: the batch of `from`, else the "
        "stage's positions.",
    )
    source: InputAsked | None = Field(
        default=None,
        alias="from",
        description="patch, and mean if you like: the input whose run brings the values.",
    )

    def to_compute(self, dtype: DType, source: int | None) -> Intervened:
        """The intervention as compute takes it; source: which of the donors brings the values."""
        return Intervened(
            stage=self.stage,
            op=self.op,
            where={str(word): tuple(indices) for word, indices in self.where.items()},
            value=None if self.value is None else cast(self.value, dtype),
            over=tuple(self.over or ()),
            source=source,
        )


def to_compute(asked: list[InterventionAsked], dtype: DType) -> list[Intervened]:
    """The interventions as compute takes them, each its own donor, in their place in the list.

    An InterventionError where a value overflows the dtype.
    """
    made = [
        one.to_compute(dtype, None if one.source is None else at) for at, one in enumerate(asked)
    ]
    faults = [
        fault
        for at, one in enumerate(made)
        if one.value is not None
        for fault in overflows(np.asarray(one.value), (at, "value"))
    ]
    refuse_if(InterventionError, faults)
    return made
