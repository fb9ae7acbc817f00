"""The small model in process, over a function written by hand that returns the same dictionary."""

from benchmarks.paired import Effort, Measured, Side, ratio


def by_hand(effort: Effort) -> Measured:
    """n = 8, d = 64, 4 heads, f = 256, the 14 listed stages."""
    ours = Side(factory="benchmarks.sides.ours:small")
    return ratio(ours, Side(factory="benchmarks.sides.by_hand:small"), effort)


MEASURES = {"small": by_hand}
"""Bar -> how it is measured."""
