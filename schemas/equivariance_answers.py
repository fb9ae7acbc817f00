"""What POST /v1/equivariance answers. Every key is always there."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from compute.config import PositionKind
from compute.types import DType
from schemas.answers import Entry, InputAnswer, ModelAnswer

CaseName = Literal["as_it_is", "without_positions", "without_mask", "without_both"]


class FirstFailureAnswer(TypedDict):
    """The first stage of a case that does not permute."""

    stage: Annotated[str, Field(description="Its name.")]
    positions: Annotated[
        list[int], Field(description="Rows of the permuted run that differ beyond the tolerance.")
    ]


class PermutedStageAnswer(TypedDict):
    """A stage of the permuted run beside the same stage of the first run, permuted."""

    name: Annotated[str, Field(description="The stage.")]
    axes: Annotated[list[str], Field(description="What each axis counts.")]
    max_abs: Annotated[
        Entry,
        Field(
            description="Largest difference; null where one of the two is no finite number and "
            "the other is another: masked here and not there, or overflowed."
        ),
    ]
    rel: Annotated[Entry, Field(description="max_abs over the largest number of the stage.")]
    permutes: Annotated[bool, Field(description="Whether rel is within the tolerance.")]
    worst_position: Annotated[
        int | None,
        Field(description="The row with the largest difference; null: none, or no rows."),
    ]
    by_position: Annotated[
        list[Entry] | None,
        Field(
            description="The largest difference of each row of the permuted run. null for a stage "
            "whose rows are a memory's, which stay."
        ),
    ]


class PermutedCaseAnswer(TypedDict):
    """The two runs of one case."""

    case: Annotated[CaseName, Field(description="What was taken away.")]
    positions: Annotated[bool, Field(description="Whether the case keeps the model's positions.")]
    mask: Annotated[bool, Field(description="Whether it keeps the causal mask and the windows.")]
    same_as: Annotated[
        CaseName | None,
        Field(description="The earlier case that is the same: the model has not what was taken."),
    ]
    permutes: Annotated[
        bool | None, Field(description="Whether every stage does; null: the case has none of them.")
    ]
    first: Annotated[FirstFailureAnswer | None, Field(description="Where it fails; null: nowhere.")]
    stages: Annotated[list[PermutedStageAnswer], Field(description="In the order of computation.")]


class SeesOrderAnswer(TypedDict):
    """What of a model sees the order of rows."""

    positions: Annotated[PositionKind, Field(description="position.kind of its config.")]
    mask: Annotated[bool, Field(description="Whether attention is causal or has a window.")]


class EquivarianceAnswer(TypedDict):
    """Which stages permute with the rows."""

    model: Annotated[ModelAnswer, Field(description="Which model ran.")]
    input: Annotated[InputAnswer, Field(description="The input as read, before it is permuted.")]
    permutation: Annotated[
        list[int], Field(description="Row i of the permuted input is row permutation[i].")
    ]
    dtype: Annotated[DType, Field(description="Of the arithmetic.")]
    tolerance: Annotated[float, Field(description="The largest rel of a stage that permutes.")]
    has: Annotated[SeesOrderAnswer, Field(description="What sees the order of rows.")]
    cases: Annotated[list[PermutedCaseAnswer], Field(description="Four, the model as it is first.")]
