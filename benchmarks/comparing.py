"""A run beside the stored baseline: what got slower, or faster, by more than the noise."""

from collections.abc import Iterable, Iterator, Mapping

from benchmarks.bars import BY_NAME
from benchmarks.results import Line

LEAST = 0.03
"""A change below this share is never told."""


def changes(lines: Iterable[Line], stored: Mapping[str, Line]) -> Iterator[str]:
    """A sentence for each bar whose quartiles no longer meet those of the baseline."""
    for line in lines:
        before = stored.get(line.name)
        if before is None or line.value is None or before.value is None:
            continue
        change = BY_NAME[line.name].worse(line.value, before.value)
        if abs(change) > LEAST and _apart(line, before):
            word = "worse" if change > 0 else "better"
            told = f"{before.value:.3g} before, {line.value:.3g} now"
            yield f"{line.name}: {abs(change):.0%} {word} than the baseline ({told})"


def slower(lines: Iterable[Line], stored: Mapping[str, Line]) -> bool:
    """Whether any bar got worse by more than the noise."""
    return any(" worse than " in sentence for sentence in changes(lines, stored))


def _apart(line: Line, before: Line) -> bool:
    """Whether the middle halves of both do not overlap."""
    assert line.low is not None
    assert line.high is not None
    assert before.low is not None
    assert before.high is not None
    return line.low > before.high or line.high < before.low
