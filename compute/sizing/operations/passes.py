"""What a pass runs over: positions of each stack, and the pairs of its attention."""

from dataclasses import dataclass
from functools import partial

from compute.config import ModelConfig
from compute.sizing.operations import pairs
from compute.sizing.operations.pairs import Counted
from compute.sizing.quantity import Quantity, number, q
from compute.sizing.vocabulary import Conventions, Head, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Positions of each of `batch` sequences.

    rows: of the model's own stack. source: of the memory as it is made: the encoder's, and what
    W_K and W_V of cross-attention read; 0 where it is cached. memory: as cross-attention meets it.
    readout: those that are read out. runs: passes, each with one position for pooler and classes.
    own, memory_pairs: pairs of a block of the model's own stack, and of an encoder's.
    """

    batch: Quantity
    rows: Quantity
    source: Quantity
    memory: Quantity
    readout: Quantity
    runs: Quantity
    own: Counted
    memory_pairs: Counted


def forward(config: ModelConfig, workload: Workload, conventions: Conventions) -> Pass:
    """One pass over `tokens` positions behind `cached` ones."""
    n, past, memory = q("n", workload.tokens), _cached(workload), _memory(config, workload)
    source = number(0) if workload.cached else memory
    return Pass(
        batch=q("B", workload.batch),
        rows=n,
        source=source,
        memory=memory,
        readout=_read_out(n, number(1), conventions.head),
        runs=number(1),
        own=partial(pairs.visible, n, past),
        memory_pairs=partial(pairs.visible, source, number(0)),
    )


def steps(config: ModelConfig, workload: Workload, conventions: Conventions) -> Pass:
    """The new - 1 steps of one position after a prompt; its pass gives the first new token."""
    made, memory = q("steps", max(workload.new - 1, 0)), _memory(config, workload)
    behind = q("n", workload.tokens) + _cached(workload)
    return Pass(
        batch=q("B", workload.batch),
        rows=made,
        source=number(0),
        memory=memory,
        readout=_read_out(made, made, conventions.head),
        runs=made,
        own=partial(pairs.over_steps, made, behind),
        memory_pairs=partial(pairs.visible, number(0), number(0)),
    )


def _cached(workload: Workload) -> Quantity:
    return q("past", workload.cached) if workload.cached else number(0)


def _memory(config: ModelConfig, workload: Workload) -> Quantity:
    return q("s", workload.source) if config.cross_attention else number(0)


def _read_out(every: Quantity, last: Quantity, head: Head | None) -> Quantity:
    return {"all": every, "last": last, "none": number(0)}[head or "all"]
