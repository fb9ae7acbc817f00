"""How much fits into a memory: as asked for and as answered."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from compute.sizing.formats import NumberFormat
from compute.sizing.vocabulary import Kind, Unit
from schemas.base import Asked, exactly_one
from schemas.model import ModelAsked
from schemas.sizing.activations import ActivationsAsked
from schemas.sizing.answer import SizedModelAnswer
from schemas.sizing.devices import DeviceAsked, MemoryAmountAsked
from schemas.sizing.kv_cache import CacheFormatAsked
from schemas.sizing.ledger import Amount
from schemas.sizing.weights import FormatAsked
from schemas.sizing.workload import Count, Some

CapacityAsk = Literal["context", "batch", "fits"]
Included = Literal["weights", "kv_cache", "activations"]
PartName = Literal["weights", "overhead", "kv_cache", "activations"]
WindowPolicy = Literal["allocation", "lower_bound"]
Limit = Literal["memory", "weights", "positions", "cap"]


class CapacityRequest(Asked):
    """POST /v1/sizing/capacity: the most positions, or sequences, that fit into a memory."""

    model: ModelAsked = Field(description="A preset, a config, or a named model.")
    ask: CapacityAsk = Field(
        description="context: the most positions of a sequence; batch: the most sequences; fits: "
        "whether so many of both do."
    )
    budget: MemoryAmountAsked | None = Field(default=None, description="The memory there is.")
    device: DeviceAsked | None = Field(
        default=None, description="In its place, the memory of a device, by name or as said."
    )
    utilisation: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        default=1.0, description="The share of it that may be used."
    )
    overhead: MemoryAmountAsked | None = Field(
        default=None, description="What else stands in it. Default: nothing."
    )
    tokens: Some | None = Field(
        default=None,
        description="Positions of a sequence; for batch and fits. Of an image its patches.",
    )
    batch: Some | None = Field(
        default=None, description="Sequences; for context and fits. Default: 1."
    )
    source_tokens: Count | None = Field(
        default=None, description="Positions that cross-attention reads. Default: as many."
    )
    dtype: NumberFormat = Field(
        default="float16", description="What weights, cache and activations are stored in."
    )
    weights: FormatAsked | None = Field(
        default=None, description="How weights are stored. Default: dtype."
    )
    cache: CacheFormatAsked = Field(
        default=CacheFormatAsked(), description="How the KV cache is stored."
    )
    activations: ActivationsAsked = Field(
        default=ActivationsAsked(), description="How activations are kept."
    )
    include: Annotated[list[Included], Field(min_length=1, max_length=3)] | None = Field(
        default=None,
        description="What is counted. Default: weights and kv_cache; of a model that caches "
        "nothing weights and activations.",
    )
    windows: WindowPolicy = Field(
        default="allocation",
        description="What blocks with a window keep: every position, as engines with alike pages "
        "do, or no more than the window.",
    )

    @model_validator(mode="after")
    def _one_memory(self) -> Self:
        exactly_one(self, "budget", "device")
        if self.include is not None and len({*self.include}) != len(self.include):
            rule = "include names the same thing twice."
            raise PydanticCustomError("include", "{rule}", {"rule": rule})
        return self


class CapacityValueAnswer(TypedDict):
    """The largest whole number that fits."""

    value: Annotated[int, Field(description="The number; 0: none does.")]
    exact: Annotated[str, Field(description="Every digit.")]
    unit: Annotated[Unit, Field(description="tokens of each sequence, or sequences.")]


class MemoryAnswer(TypedDict):
    """The memory there is."""

    device: Annotated[str | None, Field(description="As asked.")]
    total: Annotated[Amount, Field(description="All of it.")]
    utilisation: Annotated[float, Field(description="The share that may be used.")]
    usable: Annotated[Amount, Field(description="That share, in whole bytes.")]


class CapacityPartAnswer(TypedDict):
    """What stands in the memory."""

    id: Annotated[PartName, Field(description="Which part.")]
    bytes: Annotated[Amount, Field(description="At the answer.")]
    share: Annotated[float, Field(description="Of the total; 0 where the total is 0.")]
    growth: Annotated[
        Amount | None, Field(description="What one more adds; null: none is looked at.")
    ]


class FollowingAnswer(TypedDict):
    """One more than the answer."""

    value: Annotated[int, Field(description="The next number.")]
    total: Annotated[Amount, Field(description="Bytes there.")]
    missing: Annotated[Amount, Field(description="By how much they are too many.")]


class BindingAnswer(TypedDict):
    """What the answer ends at."""

    limit: Annotated[
        Limit,
        Field(
            description="memory; weights, with overhead more than is usable; positions, of a "
            "learned table or an image; cap, 2^40."
        ),
    ]
    part: Annotated[
        PartName | None,
        Field(description="The part one more adds most to, of fits the largest; null: no part."),
    ]
    detail: Annotated[str, Field(description="The same in words.")]


class CapacityAnswer(TypedDict):
    """What fits, what it takes, and what stops it."""

    model: Annotated[SizedModelAnswer, Field(description="What was sized.")]
    ask: Annotated[CapacityAsk, Field(description="As asked.")]
    answer: Annotated[CapacityValueAnswer | None, Field(description="null for fits.")]
    fits: Annotated[bool, Field(description="Whether the parts are within what is usable.")]
    batch: Annotated[int, Field(description="Sequences, at the answer.")]
    tokens: Annotated[int, Field(description="Positions of each, at the answer.")]
    memory: Annotated[MemoryAnswer, Field(description="What there is.")]
    total: Annotated[Amount, Field(description="The sum of the parts.")]
    parts: Annotated[list[CapacityPartAnswer], Field(description="What is in it, at the answer.")]
    left: Annotated[Amount, Field(description="usable less total; below 0 where it does not fit.")]
    following: Annotated[
        FollowingAnswer | None, Field(description="One more, which does not fit; null: no more.")
    ]
    binding: Annotated[BindingAnswer, Field(description="What stops it.")]
    kind: Annotated[Kind, Field(description="Of the bytes.")]
    include: Annotated[list[Included], Field(description="What was counted.")]
    windows: Annotated[WindowPolicy, Field(description="As asked.")]
    notes: Annotated[list[str], Field(description="The rules that the numbers follow.")]
    excluded: Annotated[list[str], Field(description="What is not counted.")]
