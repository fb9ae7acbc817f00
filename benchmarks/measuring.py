"""From a bar to its line: which group measures it, and what is told where that fails."""

import subprocess
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks import results, settled
from benchmarks.bars import Bar
from benchmarks.groups import accuracy, block, memory, service, small, stack, wire
from benchmarks.paired import Effort, Measured, told
from benchmarks.results import Line

_AGREEING = 128
"""Positions at which the other sides' numbers are held against the product's."""

MEASURES: Mapping[str, Callable[[Effort], Measured]] = {
    **block.MEASURES,
    **stack.MEASURES,
    **memory.MEASURES,
    **small.MEASURES,
    **wire.MEASURES,
    **service.MEASURES,
    **accuracy.MEASURES,
}
"""Bar -> how it is measured."""


def line(bar: Bar, effort: Effort) -> Line:
    """The bar as measured; what cannot be measured says why and stops nothing else."""
    try:
        measured = MEASURES[bar.name](effort)
    except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
        return Line(name=bar.name, failed=str(error).splitlines()[0][:200])
    return results.line(bar.name, measured.values, measured.details)


def head(effort: Effort) -> dict[str, Any]:
    """The machine, the other packages, and whether they compute the same block."""
    machine = "benchmarks.machine"
    found: dict[str, Any] = {"machine": told(machine, {}, effort)}
    if effort.peers is not None:
        module, asked = "benchmarks.peers.agreement", {"positions": _AGREEING}
        found["peers"] = told(machine, {}, effort, peers=True)
        found["agreement"] = told(module, asked, effort, peers=True)
    return found


def baseline() -> Mapping[str, Line]:
    """The stored lines by name, or none."""
    path = settled.ROOT / "benchmarks" / "baseline.json"
    return {one.name: one for one in results.read(path)[0]} if path.exists() else {}
