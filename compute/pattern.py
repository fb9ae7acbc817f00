"""From scores to mixing weights, as equations."""

from collections.abc import Callable

from compute import ops
from compute.block_weights import AttentionWeights
from compute.types import Array, Equations

Pattern = Callable[[Array, AttentionWeights], Equations]


def plain_pattern(S: Array, w: AttentionWeights) -> Equations:
    """A = softmax(S): (..., h, n, m) -> same."""
    return (yield "attn.pattern", ops.softmax(S))


def sink_pattern(S: Array, w: AttentionWeights) -> Equations:
    """A = softmax over the scores and the head's sink: a row sums to 1 less the sink's share."""
    A, sink = ops.softmax_with_sinks(S, w.sinks)
    pattern = yield "attn.pattern", A
    yield "attn.sink", sink
    return pattern
