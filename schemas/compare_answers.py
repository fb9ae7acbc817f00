"""What a comparison answers."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from schemas.answers import Entry, InputAnswer, ModelAnswer


class ComparedRun(TypedDict):
    """One of the two runs."""

    model: Annotated[ModelAnswer, Field(description="Which model ran.")]
    input: Annotated[InputAnswer, Field(description="The input as read.")]


class StageDifference(TypedDict):
    """A stage that both runs have, in one shape."""

    name: Annotated[str, Field(description="Its full name.")]
    shape: Annotated[list[int], Field(description="Its shape in both, as selected.")]
    max_abs: Annotated[Entry, Field(description="Largest |a - b|; null where that is not finite.")]
    rel: Annotated[
        Entry,
        Field(description="max_abs over the largest |b|; null where that is 0 or not finite."),
    ]
    norm_ratio: Annotated[
        Entry, Field(description="Norm of a over norm of b; null where that is 0 or not finite.")
    ]
    differs: Annotated[bool, Field(description="Whether max_abs is above the threshold.")]
    nonfinite: Annotated[
        int,
        Field(
            description="Entries that are not finite in one run and not the same in the other: "
            "any of them makes max_abs null. Masked in both, they are the same."
        ),
    ]


class StageShapes(TypedDict):
    """A stage that both runs have, in different shapes."""

    name: Annotated[str, Field(description="Its full name.")]
    a: Annotated[list[int], Field(description="Its shape in a.")]
    b: Annotated[list[int], Field(description="Its shape in b.")]


class OnlyIn(TypedDict):
    """Stages of one run alone, each with the reason why the other lacks it."""

    a: Annotated[dict[str, str], Field(description="Stages of a, and why b has none.")]
    b: Annotated[dict[str, str], Field(description="Stages of b, and why a has none.")]


class CompareAnswer(TypedDict):
    """Two runs, stage by stage in the order in which a computed them."""

    a: Annotated[ComparedRun, Field(description="The run that is compared.")]
    b: Annotated[ComparedRun, Field(description="The run that it is compared with.")]
    threshold: Annotated[float, Field(description="As asked for.")]
    stages: Annotated[
        list[StageDifference], Field(description="The stages of both, in order of computation.")
    ]
    first_difference: Annotated[
        str | None, Field(description="The first stage that differs; null: none does.")
    ]
    reason: Annotated[
        str | None, Field(description="Why nothing was compared; null where something was.")
    ]
    only_in: Annotated[OnlyIn, Field(description="The stages of one run alone.")]
    shapes: Annotated[
        list[StageShapes], Field(description="The stages of both whose shapes differ.")
    ]
