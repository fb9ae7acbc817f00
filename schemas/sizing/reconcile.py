"""What POST /v1/sizing/reconcile reads and answers: a published count from the exact one."""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from schemas.base import Asked
from schemas.model import ModelAsked
from schemas.sizing.answer import SizedModelAnswer
from schemas.sizing.ledger import Amount, Number, SymbolAnswer

MOST_BEST = 20
_MOST = 10**18
_RULE = (
    "A published count is a whole number from 1 to 10^18, or digits with K, M, B or T as text: "
    '684531386000, "684531386000", "1.3B".'
)
_PATTERN = r"^([0-9]{1,19})(?:\.([0-9]{1,12}))?([KMBT]?)$"
_THOUSANDS = {"": 0, "K": 3, "M": 6, "B": 9, "T": 12}


@dataclass(frozen=True, slots=True)
class Written:
    """A count as published: the text, its value, and the counts that are written like that."""

    text: str
    value: int
    lowest: int
    highest: int


def _written(raw: object) -> Written:
    made = _of_text(raw) if isinstance(raw, str) else _of_number(raw)
    if made is None or not 1 <= made.value <= _MOST:
        raise PydanticCustomError("published", "{rule}", {"rule": _RULE})
    return made


def _of_number(raw: object) -> Written | None:
    if type(raw) is not int or not 1 <= raw <= _MOST:
        return None
    return Written(str(raw), raw, raw, raw)


def _of_text(raw: str) -> Written | None:
    """The last digit that is written is rounded: the count is within half of its worth."""
    found = re.fullmatch(_PATTERN, raw, re.ASCII)
    if found is None:
        return None
    whole, decimals, suffix = found[1], found[2] or "", found[3]
    worth = Fraction(10) ** (_THOUSANDS[suffix] - len(decimals))
    value = int(whole + decimals) * worth
    if value.denominator != 1:
        return None
    half = worth / 2 if suffix else Fraction(0)
    lowest, highest = -(-(value - half) // 1), (value + half) // 1
    return Written(raw, int(value), max(lowest, 1), highest)


PublishedAsked = Annotated[
    Written,
    PlainValidator(_written),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": _MOST},
                {"type": "string", "pattern": _PATTERN},
            ]
        }
    ),
]


class ReconcileRequest(Asked):
    """POST /v1/sizing/reconcile: why a published count is not the exact one."""

    model: ModelAsked = Field(description="Whose count it is said to be.")
    published: PublishedAsked = Field(
        description="The published count: a whole number, or text with K, M, B or T, whose last "
        'digit is taken as rounded: "1.3B" is from 1.25 to 1.35 billion.'
    )
    unit: Literal["parameters"] = Field(default="parameters", description="What is counted.")
    best: Annotated[int, Field(ge=1, le=MOST_BEST)] = Field(
        default=5, description="How many explanations are answered."
    )


class PublishedAnswer(TypedDict):
    """A count as it was written, and the counts that are written like it."""

    text: Annotated[str, Field(description="As it was sent.")]
    value: Annotated[Amount, Field(description="The count.")]
    lowest: Annotated[Amount, Field(description="The smallest count that is written like that.")]
    highest: Annotated[Amount, Field(description="The largest.")]


class ChangedPartAnswer(TypedDict):
    """What one part gains."""

    id: Annotated[str, Field(description="Which part.")]
    value: Annotated[Number, Field(description="Numbers gained; below 0: lost.")]
    exact: Annotated[str, Field(description="Every digit of the value.")]
    formula: Annotated[str, Field(description="The value by letters; see symbols.")]
    substituted: Annotated[str, Field(description="The formula with the numbers in it.")]


class DifferenceAnswer(TypedDict):
    """One way to count otherwise."""

    id: Annotated[str, Field(description="Its name.")]
    group: Annotated[str, Field(description="Of a group at most one is in an explanation.")]
    words: Annotated[str, Field(description="What is counted otherwise.")]
    value: Annotated[Amount, Field(description="Its parts' sum.")]
    parts: Annotated[list[ChangedPartAnswer], Field(description="Part by part.")]


class ExplanationAnswer(TypedDict):
    """Differences that hold together, and what they make of the exact count."""

    id: Annotated[
        str,
        Field(description="as_counted, rounding, or the differences' ids joined by +."),
    ]
    words: Annotated[str, Field(description="What is counted otherwise.")]
    differences: Annotated[list[DifferenceAnswer], Field(description="From none to three.")]
    number: Annotated[Amount, Field(description="The exact count and the differences.")]
    remaining: Annotated[Amount, Field(description="The published count less that number.")]
    exact: Annotated[
        bool, Field(description="Whether the number is from lowest to highest: nothing is left.")
    ]


class ReconcileAnswer(TypedDict):
    """A published count from the exact one."""

    model: Annotated[SizedModelAnswer, Field(description="The model.")]
    symbols: Annotated[list[SymbolAnswer], Field(description="The letters of the formulas.")]
    ours: Annotated[Amount, Field(description="Every number of the model once.")]
    published: Annotated[PublishedAnswer, Field(description="The published count.")]
    difference: Annotated[Amount, Field(description="The published count less ours.")]
    explanations: Annotated[
        list[ExplanationAnswer],
        Field(description="Exact ones first: fewest differences, most usual; then the nearest."),
    ]
    explained: Annotated[bool, Field(description="Whether an explanation is exact.")]
    notes: Annotated[list[str], Field(description="How to read them.")]
