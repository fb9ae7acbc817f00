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
    title: str
    status: int
    detail: str
    instance: Annotated[str, Field(description="This occurrence, as in the service's log.")]
    errors_total: Annotated[int, Field(description="How many faults there are, listed or not.")]
    errors: list[ProblemFault]


class BrokenLimit(TypedDict):
    """A limit, and what would have been needed."""

    name: str
    value: int | float
    got: NotRequired[Annotated[int | float, Field(description="Absent where it is not known.")]]


class EstimatePart(TypedDict):
    """What one stage adds to an answer."""

    stage: str
    elements: int


class Estimate(TypedDict):
    """What the request would have cost, its largest parts first."""

    elements: int
    bytes: int
    seconds: float
    parts: list[EstimatePart]


class Advice(TypedDict):
    """What would fit."""

    text: NotRequired[str]
    select: NotRequired[list[JsonValue]]


class LimitProblem(Problem):
    """A request beyond a limit."""

    limit: BrokenLimit
    estimate: NotRequired[Estimate]
    advice: NotRequired[Advice]


class UnknownModelProblem(Problem):
    """A request that names a model which is not there."""

    models: Annotated[list[str], Field(description="The models there are.")]


class ProblemKind(Answered):
    """A kind of problem, explained."""

    type: str
    title: str
    status: int
    meaning: str
