"""One change at a time over a grid of blocks, heads, positions or features."""

from compute.sweep.cells import Swept, run

__all__ = ["Swept", "run"]
