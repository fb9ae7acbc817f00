"""The products with weights of one cached step: FLOP and bytes of all of them together."""

from dataclasses import dataclass

from compute.config import ModelConfig
from compute.sizing.operations import flops, passes
from compute.sizing.times import traffic
from compute.sizing.times.attention_traffic import Stored
from compute.sizing.vocabulary import Conventions, Workload

_STEP = Conventions(head="last")


@dataclass(frozen=True, slots=True)
class LinearStep:
    """FLOP; bytes of weights and of rows in and out."""

    flops: int
    bytes: int


def of(config: ModelConfig, batch: int, form: Stored) -> LinearStep:
    """A step of one position of each of `batch` sequences: products in blocks, and the readout."""
    workload = Workload(batch=batch, tokens=1, cached=1)
    one = flops.forward(config, Workload(tokens=1, cached=1), _STEP)
    work = {part.id: part for part in one.parts if "attention" not in part.views}
    run = passes.forward(config, workload, _STEP)
    moved = [x for x in traffic.of(config, workload, run, _STEP, form) if x.id in work]
    return LinearStep(
        flops=batch * int(sum(part.value for part in work.values())),
        bytes=int(sum(x.count * (x.weights.value + x.activations.value) for x in moved)),
    )
