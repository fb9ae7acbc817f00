"""What POST /v1/sizing answers."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from compute.sizing.formats import NumberFormat
from schemas.resolved import ConfigAnswer
from schemas.sizing.activations import ActivationsAnswer
from schemas.sizing.crossovers import CrossoversAnswer
from schemas.sizing.flops import FlopsAnswer
from schemas.sizing.kv_cache import KvCacheAnswer
from schemas.sizing.ledger import SymbolAnswer
from schemas.sizing.parameters import ParametersAnswer
from schemas.sizing.roofline import RooflineAnswer
from schemas.sizing.sensitivity import SensitivityAnswer
from schemas.sizing.trace import SizedTraceAnswer
from schemas.sizing.training import TrainingAnswer
from schemas.sizing.weights import WeightBytesAnswer


class SizedModelAnswer(TypedDict):
    """The model that was sized."""

    name: Annotated[str | None, Field(description="A named model's.")]
    preset: Annotated[str | None, Field(description="A preset's.")]
    overrides: Annotated[list[str], Field(description="Fields changed beside a name or preset.")]
    config: Annotated[ConfigAnswer, Field(description="Resolved, nothing optional.")]


class WorkloadAnswer(TypedDict):
    """Sequences and positions, nothing optional."""

    batch: Annotated[int, Field(description="Sequences B.")]
    tokens: Annotated[int, Field(description="Positions n of each.")]
    cached: Annotated[int, Field(description="Positions before them, in the cache.")]
    source_tokens: Annotated[int, Field(description="Positions that cross-attention reads.")]
    new_tokens: Annotated[int, Field(description="Tokens generated after them.")]
    dtype: Annotated[NumberFormat, Field(description="What is not said otherwise is stored in.")]


class SizingAnswer(TypedDict):
    """What was asked for; null what was not, or does not apply: see absent."""

    model: Annotated[SizedModelAnswer, Field(description="The model.")]
    symbols: Annotated[list[SymbolAnswer], Field(description="The letters of the formulas.")]
    workload: Annotated[WorkloadAnswer, Field(description="What it is to run.")]
    parameters: Annotated[ParametersAnswer | None, Field(description="Numbers it holds.")]
    flops: Annotated[FlopsAnswer | None, Field(description="Operations.")]
    kv_cache: Annotated[KvCacheAnswer | None, Field(description="Bytes of the cache.")]
    weights: Annotated[WeightBytesAnswer | None, Field(description="Bytes of the weights.")]
    activations: Annotated[ActivationsAnswer | None, Field(description="Bytes of activations.")]
    trace: Annotated[SizedTraceAnswer | None, Field(description="A trace of this service.")]
    training: Annotated[TrainingAnswer | None, Field(description="Bytes of training's state.")]
    roofline: Annotated[RooflineAnswer | None, Field(description="Times on a device.")]
    crossovers: Annotated[CrossoversAnswer | None, Field(description="Where one passes another.")]
    sensitivity: Annotated[SensitivityAnswer | None, Field(description="What each field moves.")]
    absent: Annotated[dict[str, str], Field(description="What does not apply, and why.")]
