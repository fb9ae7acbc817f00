"""Sensitivity as answered: what each field of the config moves."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from schemas.sizing.ledger import Amount, Number


class MoveAnswer(TypedDict):
    """A number before and after the step."""

    before: Annotated[Amount, Field(description="As it is.")]
    after: Annotated[Amount, Field(description="After the step, exactly.")]
    difference: Annotated[Number, Field(description="after - before.")]
    elasticity: Annotated[
        float | None,
        Field(description="Percent for each percent of the field; null where either is 0."),
    ]


class FieldAnswer(TypedDict):
    """A field of the config, all others kept."""

    field: Annotated[str, Field(description="Dotted, as in the config.")]
    value: Annotated[int, Field(description="As it is.")]
    next: Annotated[int, Field(description="The next value that the rules allow.")]
    parameters: Annotated[MoveAnswer, Field(description="Numbers that the model holds.")]
    flops: Annotated[MoveAnswer, Field(description="A pass over the workload.")]
    kv_bytes_per_token: Annotated[
        MoveAnswer | None, Field(description="A further position; null: nothing is cached.")
    ]


class SensitivityAnswer(TypedDict):
    """What each field moves."""

    fields: Annotated[list[FieldAnswer], Field(description="Those that move most first.")]
    fixed: Annotated[dict[str, str], Field(description="Fields that cannot grow, and why.")]
    notes: Annotated[list[str], Field(description="How it was worked out.")]
