"""What a sweep answers."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from schemas.answers import Entry, InputAnswer, ModelAnswer, Nonfinite, PackedAnswer, Rank2, Rank3

Table = list[Entry] | Rank2 | Rank3 | PackedAnswer
"""As many axes as the grid has."""


class SweepInputs(TypedDict):
    """The inputs as read."""

    clean: Annotated[InputAnswer, Field(description="The input that the model gets right.")]
    corrupted: Annotated[
        InputAnswer | None, Field(description="The other one; null: nothing was sent.")
    ]


class SweepAnswer(TypedDict):
    """A measure at each cell of a grid."""

    model: Annotated[ModelAnswer, Field(description="Which model ran.")]
    inputs: Annotated[SweepInputs, Field(description="Both, as the model read them.")]
    stage: Annotated[
        list[str], Field(description="The full names of the stages that were changed.")
    ]
    base: Annotated[
        Literal["clean", "corrupted"], Field(description="The input that each cell runs.")
    ]
    axes: Annotated[list[str], Field(description="What each axis of the grid counts: as in over.")]
    shape: Annotated[list[int], Field(description="Length of each axis.")]
    dtype: Annotated[Literal["float64"], Field(description="Measures are summed in float64.")]
    index: Annotated[
        dict[str, list[int]], Field(description="Axis -> the blocks or entries of its cells.")
    ]
    data: Annotated[
        Table,
        Field(description="The measure with each cell changed; null where it is not finite."),
    ]
    nonfinite: NotRequired[
        Annotated[
            Literal["-inf"] | Nonfinite,
            Field(description="Which nulls of data stand for what. Absent: no nulls."),
        ]
    ]
    clean: Annotated[Entry, Field(description="The measure of the clean run; null if not finite.")]
    corrupted: Annotated[
        Entry,
        Field(description="Of the corrupted run; null if there is none, or it is not finite."),
    ]
    normalized: Annotated[
        Table | None,
        Field(
            description="(data - corrupted) / (clean - corrupted): 0 where a cell is as corrupted, "
            "1 where it is as clean. null for the reason given."
        ),
    ]
    reason: Annotated[
        str | None, Field(description="Why normalized is null; null where it is not.")
    ]
