"""What POST /v1/sizing is asked: a model, what to size of it, and what it is to run."""

from typing import Annotated

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from compute.sizing.formats import NumberFormat
from compute.sizing.vocabulary import Ask
from schemas.model import ModelAsked
from schemas.sizing.activations import ActivationsAsked
from schemas.sizing.devices import DeviceAsked
from schemas.sizing.flops import ConventionsAsked
from schemas.sizing.kv_cache import CacheFormatAsked
from schemas.sizing.trace import SizedTraceAsked
from schemas.sizing.training import TrainingAsked
from schemas.sizing.weights import FormatAsked
from schemas.sizing.workload import WorkloadAsked


class SizingRequest(WorkloadAsked):
    """POST /v1/sizing: what a model holds, computes and takes, exactly and part by part."""

    model: ModelAsked = Field(description="A preset, a config, or a named model.")
    ask: Annotated[list[Ask], Field(min_length=1, max_length=10)] | None = Field(
        default=None, description="What to answer. Default: all that applies, but for a device."
    )
    dtype: NumberFormat = Field(
        default="float16", description="What weights, cache and activations are stored in."
    )
    conventions: ConventionsAsked = Field(
        default=ConventionsAsked(), description="How operations are counted."
    )
    side_by_side: bool = Field(
        default=False, description="The forward pass under every named set of conventions too."
    )
    train_tokens: Annotated[int, Field(ge=1, le=1 << 60)] | None = Field(
        default=None,
        description="Tokens of a whole training, in sequences of tokens positions, "
        "priced in flops too; a fraction of a step counts as that fraction. Default: none.",
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
    training: TrainingAsked = Field(
        default=TrainingAsked(), description="What training holds beside the weights."
    )
    trace: SizedTraceAsked = Field(
        default=SizedTraceAsked(), description="Which trace of this service is sized."
    )
    device: DeviceAsked | None = Field(
        default=None, description="What it runs on, for roofline; needed there."
    )

    @field_validator("ask")
    @classmethod
    def _asks_once(cls, ask: list[Ask] | None) -> list[Ask] | None:
        if ask is not None and len({*ask}) != len(ask):
            rule = "Each is asked for once."
            raise PydanticCustomError("twice", "{rule}", {"rule": rule})
        return ask
