"""Transformer blocks in NumPy, traced: usable alone, from a notebook."""

from compute.driver import prefixed, stream
from compute.trace import Made, Run, Trace, identities_of, trace

__all__ = ["Made", "Run", "Trace", "identities_of", "prefixed", "stream", "trace"]
