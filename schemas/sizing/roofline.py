"""Times on a device as answered: of a pass and of a cached step, operator by operator."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from compute.sizing.vocabulary import Kind
from schemas.sizing.devices import DeviceAnswer
from schemas.sizing.ledger import Amount, Number, SymbolAnswer

Bound = Literal["compute", "memory"]


class OperatorAnswer(TypedDict):
    """Operators that are alike."""

    id: Annotated[str, Field(description="Which; as in flops where it is a product.")]
    count: Annotated[int, Field(description="How many alike.")]
    flops: Annotated[Number, Field(description="FLOP of all of them; 0: numbers are only read.")]
    bytes: Annotated[Number, Field(description="weights + cache + activations.")]
    weights: Annotated[Number, Field(description="Bytes of weights read.")]
    cache: Annotated[Number, Field(description="Bytes of keys and values read.")]
    activations: Annotated[Number, Field(description="Bytes of rows read and written.")]
    intensity: Annotated[float, Field(description="FLOP a byte.")]
    compute_seconds: Annotated[float, Field(description="FLOP / peak.")]
    memory_seconds: Annotated[float, Field(description="bytes / bandwidth.")]
    seconds: Annotated[float, Field(description="The longer.")]
    share: Annotated[float, Field(description="Of the phase's seconds per operator.")]
    bound: Annotated[Bound, Field(description="Which is the longer.")]
    flops_formula: Annotated[str, Field(description="FLOP of one, by letters.")]
    bytes_formula: Annotated[str, Field(description="Bytes of one, by letters.")]


class TimeAnswer(TypedDict):
    """A time and what it is bound by."""

    seconds: Annotated[float, Field(description="The time.")]
    tokens_per_second: Annotated[
        float,
        Field(description="At most: positions of all sequences / seconds; of a step, new tokens."),
    ]
    bound: Annotated[Bound, Field(description="Whichever takes more of it.")]


class ExpertsAnswer(TypedDict):
    """Experts of a block that a pass reads."""

    counted: Annotated[int, Field(description="min(e, B·n·c): the most, which bytes count.")]
    least: Annotated[int, Field(description="c: all rows choose the same.")]
    expected: Annotated[float, Field(description="Of even choices: e·(1 - (1 - c/e)^(B·n)).")]


class PhaseAnswer(TypedDict):
    """A pass on a device."""

    kind: Annotated[
        Kind,
        Field(description="Of times: lower_bound; estimate where rows choose their experts."),
    ]
    flops: Annotated[Amount, Field(description="Of all operators.")]
    bytes: Annotated[Amount, Field(description="Of all operators.")]
    weights: Annotated[Amount, Field(description="Bytes of weights read.")]
    cache: Annotated[Amount, Field(description="Bytes of keys and values read.")]
    activations: Annotated[Amount, Field(description="Bytes of rows read and written.")]
    intensity: Annotated[float, Field(description="FLOP a byte.")]
    compute_seconds: Annotated[float, Field(description="FLOP / peak.")]
    memory_seconds: Annotated[float, Field(description="bytes / bandwidth.")]
    per_operator: Annotated[TimeAnswer, Field(description="Σ max(compute, memory).")]
    fused: Annotated[TimeAnswer, Field(description="max(Σ compute, Σ memory).")]
    experts: Annotated[ExpertsAnswer | None, Field(description="null without a mixture.")]
    operators: Annotated[list[OperatorAnswer], Field(description="In order of use.")]


class DeviceFitAnswer(TypedDict):
    """Weights and cache against the device's memory."""

    needed: Annotated[Amount, Field(description="Bytes of weights and of the cache, allocated.")]
    fits: Annotated[bool | None, Field(description="null: its memory was not said.")]


class RooflineAnswer(TypedDict):
    """The least time of a pass and of a cached step."""

    device: Annotated[DeviceAnswer, Field(description="What it was asked of.")]
    memory: Annotated[DeviceFitAnswer, Field(description="Whether it holds them at all.")]
    prefill: Annotated[PhaseAnswer, Field(description="tokens positions behind cached ones.")]
    decode: Annotated[
        PhaseAnswer | None,
        Field(description="One step behind cached + tokens; null without a causal mask."),
    ]
    symbols: Annotated[list[SymbolAnswer], Field(description="Letters of these formulas alone.")]
    notes: Annotated[list[str], Field(description="The rules that the numbers follow.")]
    excluded: Annotated[list[str], Field(description="What is not counted.")]
