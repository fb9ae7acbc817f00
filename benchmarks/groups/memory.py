"""Peak memory of a 12-block trace: over the bytes of its outputs, and with one stage kept."""

from benchmarks.paired import Effort, Measured, told

_MODULE, _FEW = "benchmarks.sides.peak", 3
_MIB = 1 << 20


def everything(effort: Effort) -> Measured:
    """All listed stages kept, n = 512: peak beyond weights ÷ bytes of the outputs."""
    found = [told(_MODULE, {"last": False}, effort) for _ in range(min(_FEW, effort.rounds))]
    values = tuple(float(str(one["peak"])) / float(str(one["outputs"])) for one in found)
    return Measured(values, {"outputs_mib": float(str(found[0]["outputs"])) / _MIB})


def last(effort: Effort) -> Measured:
    """The last resid_post kept: peak beyond weights, MiB."""
    found = [told(_MODULE, {"last": True}, effort) for _ in range(min(_FEW, effort.rounds))]
    return Measured(tuple(float(str(one["peak"])) / _MIB for one in found))


MEASURES = {"memory-all": everything, "memory-last": last}
"""Bar -> how it is measured."""
