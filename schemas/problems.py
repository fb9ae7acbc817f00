"""What a refused request is told: problem details after RFC 9457."""

from typing import Annotated, NotRequired

from pydantic import Field, JsonValue
from typing_extensions import TypedDict  # Pydantic asks for this one before Python 3.12

from schemas.base import Answered


class ProblemFault(TypedDict):
    """One broken rule."""

    pointer: Annotated[str, Field(description="Where in the request: a JSON Pointer, RFC 6901.")]
    code: Annotated[str, Field(description="Which rule.")]
    detail: Annotated[str, Field(description="The rule in a sentence.")]
    expected: NotRequired[Annotated[JsonValue, Field(description="What would have been right.")]]
    got: NotRequired[
        Annotated[JsonValue, Field(description="What came: a number, a shape or a kind.")]
    ]


class Problem(TypedDict):
    """A request that was refused, or failed."""

    type: Annotated[str, Field(description="The kind of problem; its address explains it.")]
    title: Annotated[str, Field(description="The kind in words.")]
    status: Annotated[int, Field(description="The HTTP status.")]
    detail: Annotated[str, Field(description="This occurrence in words.")]
    instance: Annotated[str, Field(description="This occurrence, as in the service's log.")]
    errors_total: Annotated[int, Field(description="How many faults there are, listed or not.")]
    errors: Annotated[list[ProblemFault], Field(description="The faults that were found.")]


Count = int | Annotated[str, Field(pattern="^[0-9]+$", description="Beyond 2^53.")]


class BrokenLimit(TypedDict):
    """A limit, and what would have been needed."""

    name: Annotated[str, Field(description="As in GET /v1/limits.")]
    value: Annotated[int | float, Field(description="The limit.")]
    got: NotRequired[Annotated[Count, Field(description="Absent where it is not known.")]]


class EstimatePart(TypedDict):
    """What one stage adds to an answer, or the weights to a run."""

    stage: Annotated[
        str,
        Field(
            description="The stage, over all blocks that were asked for; or `weights`, which are "
            "not of the answer and stand here where memory_bytes is too little."
        ),
    ]
    elements: Annotated[Count, Field(description="Numbers of it.")]


class Estimate(TypedDict):
    """What the request would have cost, its largest parts first."""

    elements: Annotated[Count, Field(description="Numbers in the answer.")]
    bytes: Annotated[Count, Field(description="Memory of the run and its answer.")]
    seconds: Annotated[float, Field(description="A rough guess.")]
    parts: Annotated[list[EstimatePart], Field(description="By stage, the largest first.")]


class Advice(TypedDict):
    """What would fit."""

    text: NotRequired[Annotated[str, Field(description="What to change.")]]
    select: NotRequired[Annotated[list[JsonValue], Field(description="A select that fits.")]]


class LimitProblem(Problem):
    """A request beyond a limit."""

    limit: Annotated[BrokenLimit, Field(description="Which limit.")]
    estimate: NotRequired[
        Annotated[Estimate, Field(description="What the request would have cost.")]
    ]
    advice: NotRequired[Annotated[Advice, Field(description="What would have fit.")]]


class UnknownModelProblem(Problem):
    """A request that names a model which is not there."""

    models: Annotated[list[str], Field(description="The models there are.")]


class ProblemKind(Answered):
    """A kind of problem, explained."""

    type: Annotated[str, Field(description="Its address.")]
    title: Annotated[str, Field(description="In words.")]
    status: Annotated[int, Field(description="The HTTP status.")]
    meaning: Annotated[str, Field(description="What it means and what to do.")]
