"""The largest error of a float32 run against the tests' literal float64 transcription."""

from benchmarks.paired import Effort, Measured, told

_LENGTHS = (16, 128)
"""At 512 the literal transcription, in lists of Python's numbers, would take some 40 GB."""


def error(effort: Effort) -> Measured:
    """Over n, every stage: the largest |error| ÷ the stage's largest entry."""
    each = {n: told("benchmarks.sides.error", {"positions": n}, effort) for n in _LENGTHS}
    worst = max(float(str(found["error"])) for found in each.values())
    return Measured((worst,), {f"n = {n}": found for n, found in each.items()})


MEASURES = {"error": error}
"""Bar -> how it is measured."""
