"""What training holds beside activations, as asked for and as answered."""

from typing import Annotated, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from compute.sizing.vocabulary import Optimizer, ZeroStage
from schemas.base import Asked
from schemas.sizing.ledger import Amount, LedgerAnswer, SymbolAnswer

_MOST_RANKS = 1 << 20

Bytes = Annotated[int, Field(ge=0, le=16)]


class BytesAsked(Asked):
    """Bytes that each parameter takes."""

    weights: Bytes = Field(description="Of the weights that passes read.")
    gradients: Bytes = Field(description="Of the gradients.")
    master: Bytes = Field(default=0, description="Of a copy that is updated in their place.")
    first_moment: Bytes = Field(default=0, description="Of a running mean of gradients.")
    second_moment: Bytes = Field(default=0, description="Of a running mean of their squares.")


class TrainingAsked(Asked):
    """What each parameter takes, and among how many ranks it is divided."""

    optimizer: Optimizer | None = Field(
        default=None, description="Bytes by name. Default: mixed_adam, 2 + 2 + 4 + 4 + 4."
    )
    bytes_per_parameter: BytesAsked | None = Field(
        default=None, description="The same in numbers, in the place of a name."
    )
    data_parallel: Annotated[int, Field(ge=1, le=_MOST_RANKS)] = Field(
        default=1, description="R: ranks that run the same model on other sequences."
    )

    @model_validator(mode="after")
    def _one_optimizer(self) -> Self:
        if self.optimizer is not None and self.bytes_per_parameter is not None:
            rule = "Give one of optimizer and bytes_per_parameter, or neither."
            raise PydanticCustomError("optimizer", "{rule}", {"rule": rule})
        return self


class BytesAnswer(TypedDict):
    """Bytes that each parameter takes."""

    weights: Annotated[int, Field(description="Of the weights that passes read.")]
    gradients: Annotated[int, Field(description="Of the gradients.")]
    master: Annotated[int, Field(description="Of a copy that is updated in their place.")]
    first_moment: Annotated[int, Field(description="Of a running mean of gradients.")]
    second_moment: Annotated[int, Field(description="Of a running mean of their squares.")]
    total: Annotated[int, Field(description="Their sum.")]


class StageAnswer(LedgerAnswer):
    """What the fullest rank holds under one stage of ZeRO."""

    stage: Annotated[ZeroStage, Field(description="0: nothing is divided.")]


class TrainingAnswer(TypedDict):
    """Bytes that training holds beside activations."""

    optimizer: Annotated[Optimizer | None, Field(description="null: given in numbers.")]
    bytes_per_parameter: Annotated[BytesAnswer, Field(description="As named or given.")]
    data_parallel: Annotated[int, Field(description="R.")]
    all_ranks: Annotated[Amount, Field(description="One undivided copy.")]
    stages: Annotated[list[StageAnswer], Field(description="Of one rank, stage 0 to 3.")]
    symbols: Annotated[list[SymbolAnswer], Field(description="Letters of these formulas alone.")]
    notes: Annotated[list[str], Field(description="The rules that the numbers follow.")]
    excluded: Annotated[list[str], Field(description="What is not counted.")]
