"""Twelve blocks, all stages kept, over TransformerLens; and time over predicted FLOPs."""

import random
import statistics
from itertools import product

from benchmarks.groups import block
from benchmarks.paired import Effort, Measured, Side, once, ratio
from benchmarks.sides import predicted

_SIZES = (256, 512, 1024, 2048)
_DEEP = (*product((256, 2048), repeat=2), (512, 512))
_CELLS = (*((n, d, 1) for n, d in product(_SIZES, repeat=2)), *((n, d, 12) for n, d in _DEEP))
"""Positions, width, blocks: every pair at one block, the corners and the middle at twelve."""


def over_lens(effort: Effort) -> Measured:
    """12 blocks, n = 512."""
    ours = block.ours(512, layers=12)
    return ratio(ours, block.peer("benchmarks.peers.lens:block", 512, layers=12), effort)


def flops(effort: Effort) -> Measured:
    """Seconds a predicted FLOP over the grid: the largest distance from the median, in percent.

    The grid is gone through in a random order; each cell is a process of its own. With few rounds
    the largest cells are left out.
    """
    bound = 1 << 20 if effort.rounds < 9 else 1 << 30
    cells = [cell for cell in _CELLS if cell[0] * cell[1] * cell[2] <= bound]
    each = {cell: _rate(cell, effort) for cell in random.sample(cells, len(cells))}
    middle = statistics.median(each.values())
    least, most = min(each.values()) / middle, max(each.values()) / middle
    grid = {"n = {}, d = {}, {} blocks".format(*cell): each[cell] / middle for cell in sorted(each)}
    details = {"least": least, "most": most, "gflop_per_second": 1e-9 / middle, "grid": grid}
    return Measured((100 * max(1 - least, most - 1),), details)


def _rate(cell: tuple[int, int, int], effort: Effort) -> float:
    positions, width, layers = cell
    arguments = {"positions": positions, "width": width, "layers": layers}
    side = Side(factory="benchmarks.sides.predicted:last", arguments=arguments)
    return once(side, effort) / predicted.flops(positions, width, layers)


MEASURES = {"lens-stack": over_lens, "flops": flops}
"""Bar -> how it is measured."""
