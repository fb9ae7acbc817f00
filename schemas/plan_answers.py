"""What a dry run answers: the plan of a request. Nothing was run, and no weight was made."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from compute.types import DType
from schemas.answers import ModelAnswer
from schemas.form import Encoding
from schemas.problems import Advice, BrokenLimit, Count, EstimatePart


class FormAnswer(TypedDict):
    """The form that this request's answer would have."""

    media: Annotated[str, Field(description="The media type.")]
    encoding: Annotated[Encoding, Field(description="Of arrays inside JSON.")]
    digits: Annotated[int | None, Field(description="Significant digits; null: all of them.")]


class PlannedStage(TypedDict):
    """A stage of the answer."""

    name: Annotated[str, Field(description="Its full name.")]
    axes: Annotated[list[str], Field(description="What each axis counts.")]
    shape: Annotated[list[int], Field(description="Length of each axis, sliced as asked.")]
    dtype: Annotated[DType | Literal["int64"], Field(description="Of the data.")]
    elements: Annotated[Count, Field(description="Numbers; five a row of a summary.")]
    bytes: Annotated[Count, Field(description="The same in bytes, as they are in memory.")]
    index: NotRequired[
        Annotated[dict[str, list[int]], Field(description="Sliced axes: which entries.")]
    ]
    summary: NotRequired[Annotated[Literal[True], Field(description="Measures of each row.")]]
    made_of: NotRequired[
        Annotated[list[str], Field(description="Of a derived stage: the kept stages it reads.")]
    ]


class SizeAnswer(TypedDict):
    """How long an answer is, in bytes."""

    about: Annotated[Count, Field(description="Of seeded weights and inputs.")]
    at_most: Annotated[Count, Field(description="No answer is longer.")]


class SizesAnswer(TypedDict):
    """The same answer in each form."""

    json: Annotated[SizeAnswer, Field(description="Nested lists.")]
    base64: Annotated[SizeAnswer, Field(description="JSON with arrays as base64.")]
    safetensors: Annotated[SizeAnswer, Field(description="One safetensors body.")]
    lines: Annotated[SizeAnswer, Field(description="JSON Lines, nested lists.")]


class PlannedBytes(TypedDict):
    """Bytes of the answer."""

    tensors: Annotated[
        Count,
        Field(description="Of all tensors' data as in memory: the data of a safetensors body."),
    ]
    summaries: Annotated[Count, Field(description="Of the numbers of all summaries.")]
    answer: Annotated[SizesAnswer, Field(description="The whole answer.")]


class PlannedWeights(TypedDict):
    """The weights that the run would read until its last stage."""

    numbers: Annotated[Count, Field(description="How many.")]
    bytes: Annotated[Count, Field(description="In the run's dtype.")]


class Plan(TypedDict):
    """What a request would answer and cost."""

    fits: Annotated[bool, Field(description="Whether it is within the limits of work.")]
    broken: Annotated[
        BrokenLimit | None, Field(description="The limit that would refuse it; null if it fits.")
    ]
    advice: Annotated[Advice | None, Field(description="What would fit; null if it fits.")]
    form: Annotated[FormAnswer, Field(description="Of this request's answer.")]
    elements: Annotated[Count, Field(description="Numbers in the answer.")]
    memory: Annotated[
        Count, Field(description="What is weighed against memory_bytes: the run and its answer.")
    ]
    flops: Annotated[
        Count,
        Field(
            description="2 for each multiply-add of a matrix product, up to the last stage that "
            "is needed; attention's of all pairs, masked or not."
        ),
    ]
    seconds: Annotated[float, Field(description="A rough guess.")]
    parts: Annotated[list[EstimatePart], Field(description="Numbers by what they are of.")]


class TracePlan(Plan):
    """The plan of a trace; with interventions of all its runs, but what is said of one."""

    stages: Annotated[
        list[PlannedStage], Field(description="Of `tensors`, in the order they are made.")
    ]
    kept: Annotated[
        list[str], Field(description="Primary stages kept while the shown run goes on, in order.")
    ]
    last: Annotated[
        str | None, Field(description="Where the shown run stops; null: nothing is run.")
    ]
    absent: Annotated[
        dict[str, str], Field(description="Stages only a wildcard met: why there are none.")
    ]
    runs: Annotated[int, Field(description="1, or with interventions how many.")]
    weights: Annotated[PlannedWeights, Field(description="What is read of the weights.")]
    bytes: Annotated[PlannedBytes, Field(description="How large the answer is.")]


class PlanAnswer(TypedDict):
    """A dry run of any call but a trace."""

    model: Annotated[ModelAnswer | None, Field(description="null where no model is asked about.")]
    plan: Annotated[Plan, Field(description="The plan.")]


class TracePlanAnswer(TypedDict):
    """A dry run of POST /v1/trace."""

    model: Annotated[ModelAnswer, Field(description="Which model would run.")]
    plan: Annotated[TracePlan, Field(description="The plan.")]
