"""Exact numbers as answered: a value, every digit of it, and the parts that it is the sum of."""

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from compute.sizing.vocabulary import Kind, Unit

Number = int | float


class Amount(TypedDict):
    """A number to the unit."""

    value: Annotated[
        Number, Field(description="The number; beyond 2^53 the double that is nearest to it.")
    ]
    exact: Annotated[str, Field(description="Every digit.")]
    unit: Annotated[Unit, Field(description="What is counted.")]
    kind: Annotated[Kind, Field(description="exact, a bound, or an estimate.")]
    GiB: NotRequired[Annotated[float, Field(description="Of bytes: the value / 2^30.")]]
    GB: NotRequired[Annotated[float, Field(description="Of bytes: the value / 10^9.")]]


LedgerPartAnswer = TypedDict(
    "LedgerPartAnswer",
    {
        "id": Annotated[str, Field(description="Which part.")],
        "count": Annotated[int, Field(description="How many alike there are.")],
        "each": Annotated[Number, Field(description="One of them.")],
        "value": Annotated[Number, Field(description="count · each; as in a total.")],
        "exact": Annotated[str, Field(description="Every digit of the value.")],
        "share": Annotated[float, Field(description="value / total; 0 where the total is 0.")],
        "formula": Annotated[str, Field(description="The value by letters; see symbols.")],
        "substituted": Annotated[str, Field(description="The formula with the numbers in it.")],
        "in": Annotated[list[str], Field(description="The views, sums of parts, that it is in.")],
    },
)
"""One part of a total."""


class LedgerAnswer(TypedDict):
    """A total and its parts, which sum to it exactly."""

    total: Annotated[Amount, Field(description="The sum of the parts.")]
    parts: Annotated[list[LedgerPartAnswer], Field(description="The parts, in order of use.")]


class SymbolAnswer(TypedDict):
    """A letter of the formulas."""

    letter: Annotated[str, Field(description="As formulas write it.")]
    meaning: Annotated[str, Field(description="What it is.")]
    value: Annotated[Number, Field(description="Its number here.")]
