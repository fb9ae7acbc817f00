"""Runs of compute built from an oracle case, so that both sides read the same data."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from compute import config_json, selection, stages, weights
from compute.driver import Patch
from compute.selection import Scene
from compute.trace import Run, trace
from compute.types import DType, Inputs, Selected

Arrays = Mapping[str, npt.NDArray[Any]]


def run_of(
    config: Mapping[str, Any],
    values: Arrays,
    inputs: Arrays,
    *,
    dtype: DType = "float64",
    select: Sequence[Selected] | None = None,
    patches: Mapping[str, Patch] | None = None,
) -> Run:
    """A Run of a resolved config (as JSON), weights by name and inputs by keyword."""
    resolved = config_json.from_json(config)
    read = Inputs(**inputs)
    tokens = read.token_ids is not None
    scene = Scene(resolved, tokens, stages.dimensions(resolved, read.positions, read.batch))
    return Run(
        config=resolved,
        weights=weights.build(resolved, lambda tensor: values[tensor.name], dtype),
        inputs=read,
        selection=selection.resolve(select, scene),
        patches=patches or {},
    )


def states(run: Run) -> dict[str, npt.NDArray[Any]]:
    """Every stage a run answers, by full name, in the order it was computed in."""
    return {made.wanted.name: made.values for made in trace(run).made}


def relative_error(values: npt.NDArray[Any], exact: npt.NDArray[np.float64]) -> float:
    """Largest |values - exact| over the largest finite |exact|; inf where the -inf differ."""
    finite = np.isfinite(exact)
    if not np.array_equal(finite, np.isfinite(values)):
        return float("inf")
    size = float(np.abs(exact[finite]).max(initial=0.0))
    apart = float(np.abs(values[finite] - exact[finite]).max(initial=0.0))
    return apart / size if size else apart


EVERYTHING = [Selected(name="*"), Selected(name="blocks.*.attn.dots")]
