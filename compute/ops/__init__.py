"""The operations of a block: pure functions from arrays to arrays, one for each concept.

dtype in = dtype out. An operation may write its result over an operand that nobody kept: the
driver freezes what is kept, so `free(x)` is x itself where its memory may be used again.
"""

from compute.ops.choosing import (
    by_expert,
    chosen_of_softmax,
    for_each_choice,
    largest,
    softmax_of_chosen,
    weighted_sum,
)
from compute.ops.heads import (
    Projected,
    across_heads,
    into_heads,
    join_heads,
    project,
    project_memory,
    project_queries,
)
from compute.ops.mixing import capped, dots, mix, scores
from compute.ops.rotating import rotate_half, rotate_interleaved
from compute.ops.rows import (
    centre,
    divide_rows,
    free,
    linear,
    multiply,
    root_mean_square,
    scale_rows,
    sigmoid,
)
from compute.ops.weighing import softmax, softmax_with_sinks

__all__ = [
    "Projected",
    "across_heads",
    "by_expert",
    "capped",
    "centre",
    "chosen_of_softmax",
    "divide_rows",
    "dots",
    "for_each_choice",
    "free",
    "into_heads",
    "join_heads",
    "largest",
    "linear",
    "mix",
    "multiply",
    "project",
    "project_memory",
    "project_queries",
    "root_mean_square",
    "rotate_half",
    "rotate_interleaved",
    "scale_rows",
    "scores",
    "sigmoid",
    "softmax",
    "softmax_of_chosen",
    "softmax_with_sinks",
    "weighted_sum",
]
