"""Roofline: the time a pass takes at least on a device that computes and reads at its peak.

An operator takes max(FLOP / peak, bytes / bandwidth). per_operator: the sum over operators, each
by itself; fused: max(Σ FLOP / peak, Σ bytes / bandwidth), as if all ran at once. Williams, Waterman
and Patterson, Roofline, CACM 52(4), 2009.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from compute.config import ModelConfig
from compute.sizing import architecture
from compute.sizing.operations import flops, passes
from compute.sizing.quantity import Quantity, number
from compute.sizing.times import devices, traffic
from compute.sizing.times.attention_traffic import Stored, Traffic
from compute.sizing.vocabulary import Conventions, Device, Kind, Workload

Bound = Literal["compute", "memory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """`count` alike: FLOP of one, bytes of one by what they are, and seconds of all of them."""

    id: str
    count: int
    flops: Quantity
    weights: Quantity
    cache: Quantity
    activations: Quantity
    compute_seconds: float
    memory_seconds: float

    @property
    def bytes(self) -> int:
        """Bytes of all of them."""
        each = self.weights.value + self.cache.value + self.activations.value
        return int(self.count * each)

    @property
    def seconds(self) -> float:
        """The longer of the two."""
        return max(self.compute_seconds, self.memory_seconds)

    @property
    def bound(self) -> Bound:
        """What takes longer."""
        return bound(self.compute_seconds, self.memory_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A pass: its operators, and sequences it is of."""

    operators: Sequence[Operator]
    batch: int
    kind: Kind

    @property
    def flops(self) -> int:
        """FLOP of all operators."""
        return int(sum(each.count * each.flops.value for each in self.operators))

    @property
    def bytes(self) -> int:
        """Bytes of all operators."""
        return sum(each.bytes for each in self.operators)

    def moved(self, what: Literal["weights", "cache", "activations"]) -> int:
        """Bytes of one sort."""
        return int(sum(each.count * getattr(each, what).value for each in self.operators))

    @property
    def per_operator(self) -> float:
        """Σ max(compute, memory), seconds."""
        return sum(each.seconds for each in self.operators)

    @property
    def compute_seconds(self) -> float:
        """Σ FLOP / peak."""
        return sum(each.compute_seconds for each in self.operators)

    @property
    def memory_seconds(self) -> float:
        """Σ bytes / bandwidth."""
        return sum(each.memory_seconds for each in self.operators)

    @property
    def bound(self) -> Bound:
        """Whichever operators take more of the sum, those that compute or those that read."""
        computing = sum(each.seconds for each in self.operators if each.bound == "compute")
        return bound(computing, self.per_operator - computing)

    @property
    def fused(self) -> float:
        """max(Σ compute, Σ memory), seconds."""
        return max(self.compute_seconds, self.memory_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Experts of a block that a pass reads: at most (this is counted), at least, and expected of
    even and independent choices, e·(1 - (1 - c/e)^T)."""

    most: int
    least: int
    expected: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """The pass over the workload, and the step after it; None for a model that has no steps."""

    prefill: Phase
    decode: Phase | None
    experts: tuple[Experts, Experts] | None


def bound(compute_seconds: float, memory_seconds: float) -> Bound:
    """Which of two times is the longer; compute where they are the same."""
    return "compute" if compute_seconds >= memory_seconds else "memory"


def of(
    config: ModelConfig,
    workload: Workload,
    form: Stored,
    device: Device,
    conventions: Conventions,
) -> Roofline:
    """Both phases. Products alone are counted: what is done elementwise is taken as done where
    rows are read or written already. Of a causal model's prompt the last position is read out."""
    decodes = flops.decodes(config)
    head = conventions.head or ("last" if decodes else "all")
    counted = replace(
        conventions,
        multiply_add=2,
        elementwise="none",
        bias_adds=False,
        embedding_lookup="free",
        head=head,
    )
    step = replace(workload, tokens=1, cached=workload.cached + workload.tokens, new=0)
    return Roofline(
        prefill=_phase(config, workload, form, device, counted),
        decode=_phase(config, step, form, device, counted) if decodes else None,
        experts=_experts(config, workload, step),
    )


def _phase(
    config: ModelConfig, workload: Workload, form: Stored, device: Device, counted: Conventions
) -> Phase:
    run = passes.forward(config, workload, counted)
    work = {part.id: part.each for part in flops.forward(config, workload, counted).parts}
    moved = traffic.of(config, workload, run, counted, form)
    found = [_operator(each, work.get(each.id, number(0)), device) for each in moved]
    made = _made_experts(config, workload.batch * workload.tokens)
    certain = made is None or made.most == made.least
    return Phase(
        operators=found, batch=workload.batch, kind="lower_bound" if certain else "estimate"
    )


def _operator(moved: Traffic, work: Quantity, device: Device) -> Operator:
    every = moved.count * (moved.weights.value + moved.cache.value + moved.activations.value)
    return Operator(
        id=moved.id,
        count=moved.count,
        flops=work,
        weights=moved.weights,
        cache=moved.cache,
        activations=moved.activations,
        compute_seconds=float(moved.count * Fraction(work.value) / devices.flops_rate(device)),
        memory_seconds=float(Fraction(every) / devices.bytes_rate(device)),
    )


def _experts(
    config: ModelConfig, workload: Workload, step: Workload
) -> tuple[Experts, Experts] | None:
    prefill = _made_experts(config, workload.batch * workload.tokens)
    decode = _made_experts(config, step.batch)
    return None if prefill is None or decode is None else (prefill, decode)


def _made_experts(config: ModelConfig, rows: int) -> Experts | None:
    """Of the stack that has experts; the model's own, or else the encoder's."""
    mixed = [x.config.ffn for x in architecture.stacks(config) if x.config.ffn.kind == "moe"]
    if not mixed:
        return None
    ffn = mixed[-1]
    missed = (1.0 - ffn.top_k / ffn.n_experts) ** min(rows, 1 << 40)
    return Experts(
        most=min(ffn.n_experts, rows * ffn.top_k),
        least=ffn.top_k,
        expected=ffn.n_experts * (1.0 - missed),
    )
