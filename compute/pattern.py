"""From scores to mixing weights, as equations."""

from collections.abc import Callable

from compute import ops
from compute.block_weights import AttentionWeights
from compute.reach import Reach, Reached, yielded
from compute.types import Array

Pattern = Callable[[Array, Reach, AttentionWeights], Reached]


def plain_pattern(S: Array, reach: Reach, w: AttentionWeights) -> Reached:
    """A = softmax(S): (..., h, n, m) -> same."""
    return (yield from yielded("attn.pattern", ops.softmax(S, reach), reach, 0.0))


def sink_pattern(S: Array, reach: Reach, w: AttentionWeights) -> Reached:
    """A = softmax over the scores and the head's sink: a row sums to 1 less the sink's share."""
    A, sink = ops.softmax_with_sinks(S, w.sinks, reach)
    pattern = yield from yielded("attn.pattern", A, reach, 0.0)
    yield "attn.sink", sink
    return pattern
