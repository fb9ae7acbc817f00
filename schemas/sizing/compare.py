"""POST /v1/sizing/compare: models part by part against the first of them."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from compute.sizing.formats import NumberFormat
from schemas.base import Asked, of_form
from schemas.model import ModelAsked
from schemas.sizing.answer import SizedModelAnswer
from schemas.sizing.flops import ConventionsAsked
from schemas.sizing.ledger import Amount, Number
from schemas.sizing.workload import Count, Some, WorkloadAsked

Compared = Literal["parameters", "flops", "kv_cache", "weights"]
Windows = Literal["allocation", "lower_bound"]
MOST_MODELS = 8

_LABEL = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
_LABEL_RULE = "A label has 1 to 64 letters, digits, dots, dashes and underscores."
Label = Annotated[
    str,
    AfterValidator(of_form(_LABEL, _LABEL_RULE)),
    WithJsonSchema({"type": "string", "pattern": _LABEL}),
]


class ComparedModelAsked(Asked):
    """One of the models, and what the answer calls it."""

    label: Label = Field(description="What the answer calls it.")
    model: ModelAsked = Field(description="A preset, a config, or a named model.")


class SizingCompareRequest(Asked):
    """POST /v1/sizing/compare: where the sizes of models differ, and which fields make it so."""

    models: Annotated[list[ComparedModelAsked], Field(min_length=2, max_length=MOST_MODELS)] = (
        Field(description="Two to eight; each of the others is compared with the first.")
    )
    ask: Annotated[list[Compared], Field(min_length=1, max_length=4)] | None = Field(
        default=None, description="What to compare. Default: all that every model has."
    )
    tokens: Some | None = Field(
        default=None,
        description="Positions n of a pass, of all models. Default: 1024, fewer where a learned "
        "table of any of them ends before; of an image its patches.",
    )
    batch: Some = Field(default=1, description="Sequences B.")
    cached: Count = Field(default=0, description="Positions before them, in the cache already.")
    dtype: NumberFormat = Field(
        default="float16", description="What weights and cache are stored in."
    )
    conventions: ConventionsAsked = Field(
        default=ConventionsAsked(), description="How operations are counted."
    )
    windows: Windows = Field(
        default="allocation",
        description="Of the cache: every block keeps all positions, or those of its window alone.",
    )

    @model_validator(mode="after")
    def _says_once(self) -> Self:
        labels = [entry.label for entry in self.models]
        if len({*labels}) != len(labels):
            rule = "Each model has a label of its own."
            raise PydanticCustomError("labels", "{rule}", {"rule": rule})
        if self.ask is not None and len({*self.ask}) != len(self.ask):
            rule = "ask names the same thing twice."
            raise PydanticCustomError("ask", "{rule}", {"rule": rule})
        return self

    def workload(self, tokens: int | None) -> WorkloadAsked:
        """What one of the models is to run."""
        return WorkloadAsked(tokens=tokens, batch=self.batch, cached=self.cached)


class ComparedModelAnswer(TypedDict):
    """A model that was compared."""

    label: Annotated[str, Field(description="What it is called here.")]
    model: Annotated[SizedModelAnswer, Field(description="Resolved.")]
    tokens: Annotated[int, Field(description="Positions n of its pass.")]


LineAnswer = TypedDict(
    "LineAnswer",
    {
        "id": Annotated[str, Field(description="Which part.")],
        "from": Annotated[Number, Field(description="The first model's; 0: it has none.")],
        "to": Annotated[Number, Field(description="This one's.")],
        "difference": Annotated[Number, Field(description="to - from.")],
        "exact": Annotated[str, Field(description="Every digit of the difference.")],
        "ratio": Annotated[float | None, Field(description="to / from; null where from is 0.")],
    },
)
"""A part of a total in both models."""


class TotalAnswer(TypedDict):
    """A model's total."""

    label: Annotated[str, Field(description="Whose.")]
    total: Annotated[Amount, Field(description="The sum of its parts.")]
    difference: Annotated[Amount, Field(description="Less the first model's.")]
    ratio: Annotated[
        float | None, Field(description="Over the first model's; null where that is 0.")
    ]
    parts: Annotated[
        list[LineAnswer], Field(description="Against the first model; differences sum to its own.")
    ]


class MovedAnswer(TypedDict):
    """What a field moves of one total."""

    of: Annotated[Compared, Field(description="Of which total.")]
    difference: Annotated[Amount, Field(description="By how much.")]
    parts: Annotated[list[str], Field(description="Which parts of it change.")]


ChangeAnswer = TypedDict(
    "ChangeAnswer",
    {
        "field": Annotated[str, Field(description="A field of the config, dotted.")],
        "from": Annotated[bool | int | float | str | None, Field(description="The first model's.")],
        "to": Annotated[bool | int | float | str | None, Field(description="This one's.")],
        "cause": Annotated[str, Field(description="The change and what it moves, in a line.")],
        "moves": Annotated[
            list[MovedAnswer],
            Field(description="What it moves, with the fields before it changed already."),
        ],
    },
)
"""A field in which a config differs from the first."""


class ChangesAnswer(TypedDict):
    """Every field in which a model differs from the first."""

    label: Annotated[str, Field(description="Which model.")]
    fields: Annotated[
        list[ChangeAnswer],
        Field(description="In the config's order; what they move sums to the difference."),
    ]


class SizingCompareAnswer(TypedDict):
    """Models against the first of them; null what was not asked for or does not apply."""

    models: Annotated[list[ComparedModelAnswer], Field(description="As asked.")]
    parameters: Annotated[list[TotalAnswer] | None, Field(description="Numbers held.")]
    flops: Annotated[list[TotalAnswer] | None, Field(description="Of a forward pass.")]
    kv_cache: Annotated[list[TotalAnswer] | None, Field(description="Bytes of the cache.")]
    weights: Annotated[list[TotalAnswer] | None, Field(description="Bytes of the weights.")]
    changes: Annotated[list[ChangesAnswer], Field(description="Of each model but the first.")]
    absent: Annotated[dict[str, str], Field(description="What does not apply, and why.")]
