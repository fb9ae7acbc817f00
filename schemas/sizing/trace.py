"""A trace of this service as sized: numbers, bytes, JSON, and whether it would be run."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from compute.types import DType, Selected
from schemas.base import Asked
from schemas.select import SelectItem
from schemas.sizing.ledger import Amount, LedgerAnswer, Number


class SizedTraceAsked(Asked):
    """Which trace is sized."""

    select: Annotated[list[SelectItem], Field(max_length=1000)] | None = Field(
        default=None,
        description="As in a trace request. Default: every primary stage and attn.head_out.",
    )
    dtype: DType = Field(default="float32", description="The trace's dtype.")
    input: Literal["token_ids", "tensor"] | None = Field(
        default=None,
        description="What the model and its encoder read. Default: token_ids where there is a "
        "vocab, else a tensor.",
    )

    def selected(self) -> list[Selected] | None:
        """The selection as compute takes it; None asks for the default."""
        return None if self.select is None else [item.to_compute() for item in self.select]


class BrokenBySizeAnswer(TypedDict):
    """A limit of this service that the trace is beyond."""

    name: Annotated[str, Field(description="As in GET /v1/limits.")]
    value: Annotated[int, Field(description="The limit.")]
    got: Annotated[Number, Field(description="What the trace needs.")]
    exact: Annotated[str, Field(description="Every digit of got.")]


class SizedTraceAnswer(TypedDict):
    """What POST /v1/trace would answer, weighed as it weighs it."""

    dtype: Annotated[DType, Field(description="As asked.")]
    input: Annotated[Literal["token_ids", "tensor"], Field(description="What is read.")]
    elements: Annotated[LedgerAnswer, Field(description="Numbers in the answer, by stage.")]
    bytes: Annotated[Amount, Field(description="The same as arrays of the dtype.")]
    json_bytes: Annotated[
        Amount,
        Field(
            description="The answer's body, about: within 15 % above 10,000 numbers, of seeded "
            "weights and inputs with all their digits."
        ),
    ]
    json_bytes_at_most: Annotated[
        Amount, Field(description="The answer's body is never larger than this.")
    ]
    flops: Annotated[Amount, Field(description="2 for each multiply-add, as admission counts.")]
    memory: Annotated[
        Amount, Field(description="Weights, stages, temporaries and text, as admission counts.")
    ]
    fits: Annotated[bool, Field(description="Whether this service would run it.")]
    limits: Annotated[
        list[BrokenBySizeAnswer], Field(description="The limits it is beyond; none if it fits.")
    ]
    excluded: Annotated[list[str], Field(description="What is not counted.")]
