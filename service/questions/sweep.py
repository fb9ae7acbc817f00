"""POST /v1/sweep: a table of a measure over one change at a time. For one worker thread."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from compute import sweep
from compute.errors import Fault, QuestionError
from compute.selection import Scene
from compute.sweep import Swept, plans
from compute.sweep.plans import Plan
from compute.types import Array
from schemas.sweep import SweepRequest
from service import dry_runs, errors, limits, modelled, views
from service.forms import tensors
from service.limits import Need
from service.modelled import Modelled, Weighted
from service.reading import Reading
from service.state import State

View = Mapping[str, object]

_ADVICE = (
    "Narrow the grid with where, sweep over fewer axes, measure a stage of an earlier block, or "
    "send a shorter input."
)
_OF_A_CELL = 2  # numbers: the measure, and normalized


@dataclass(frozen=True, slots=True)
class _Read:
    """The inputs, and which of them each cell runs."""

    clean: Reading
    corrupted: Reading | None
    base: Reading
    donor: Reading | None


def work(asked: SweepRequest, state: State, check: Callable[[], None]) -> View:
    """The members of the answer to a request; `check` may raise to stop the work."""
    with modelled.of(asked.model, asked.dtype, state, check) as model:
        read = _read(asked, model)
        planned = _plan(asked, model, read)
        need = _need(planned, model)
        if asked.dry_run:
            return dry_runs.answer(model, need, model.dtype, _ADVICE)
        needed = limits.check_need(need, model.dtype, model.settings, _ADVICE, model.form)
        weighted = model.weights(needed)
        donor = None if read.donor is None else read.donor.inputs
        found = sweep.run(planned, weighted.weights, read.base.inputs, donor, check)
        return _answer(asked, model, weighted, read, planned, found)


def _read(asked: SweepRequest, model: Modelled) -> _Read:
    clean = _one(model, asked, "clean")
    if asked.corrupted is None:
        return _Read(clean, None, clean, None)
    corrupted = _one(model, asked, "corrupted")
    _refuse_other_shape(model.scene(clean.inputs), model.scene(corrupted.inputs))
    base, donor = (
        (corrupted, clean) if asked.run_at_each_cell == "corrupted" else (clean, corrupted)
    )
    return _Read(clean, corrupted, base, donor)


def _one(model: Modelled, asked: SweepRequest, side: str) -> Reading:
    read = model.read(getattr(asked, side), (side,))
    with errors.moved(("input",), (side,)):
        limits.check_tokens(read.inputs, model.text, model.settings)
    return read


def _refuse_other_shape(clean: Scene, corrupted: Scene) -> None:
    """A patch goes from a place to the same place: the runs have the same stages and shapes."""
    if clean == corrupted:
        return
    lengths = [{word: x.lengths[letter] for word, letter in _ROWS if letter in x.lengths}
               for x in (clean, corrupted)]  # fmt: skip
    detail = (
        "clean and corrupted have the same shape, of the memory too, and both are tokens or both "
        "are tensors."
    )
    fault = Fault(
        code="shape_mismatch",
        detail=detail,
        place=("corrupted",),
        expected=lengths[0],
        got=lengths[1],
    )
    raise QuestionError([fault])


_ROWS = (("batch", "b"), ("position", "n"), ("source_position", "s"))


def _plan(asked: SweepRequest, model: Modelled, read: _Read) -> Plan:
    scene = model.scene(read.base.inputs)
    measure = model.measure(asked.measure, scene, ("measure",))
    direct = asked.path == "direct"
    return plans.plan(asked.intervened(), asked.over, scene, measure, direct=direct)


def _need(planned: Plan, model: Modelled) -> Need:
    """Of all runs and the answer."""
    cells = planned.grid.size
    return Need(
        elements=_OF_A_CELL * cells,
        bytes=plans.memory_bytes(planned, model.dtype),
        flops=plans.flops(planned) + limits.BLOCK_FLOPS * model.config.n_layers * cells,
        parts=[("data", cells), ("normalized", cells)],
        in_arrays=_OF_A_CELL * cells,
    )


def _answer(
    asked: SweepRequest,
    model: Modelled,
    weighted: Weighted,
    read: _Read,
    planned: Plan,
    found: Swept,
) -> View:
    base = asked.run_at_each_cell
    clean, corrupted = (found.base, found.donor)[:: 1 if base == "clean" else -1]
    normalized, reason = _normalized(found.values, clean, corrupted)
    grid = planned.grid
    return {
        "model": views.model(model, weighted),
        "inputs": {
            "clean": views.read(model, read.clean),
            "corrupted": None if read.corrupted is None else views.read(model, read.corrupted),
        },
        "stage": list(dict.fromkeys(grid.names.values())),
        "base": base,
        "axes": list(grid.axes),
        "shape": found.values.shape,
        "dtype": found.values.dtype.name,
        "data": found.values,
        **tensors.nonfinite(found.values),
        "index": grid.axes,
        "clean": clean,
        "corrupted": corrupted,
        "normalized": normalized,
        "reason": reason,
    }


def _normalized(
    values: Array, clean: float | None, corrupted: float | None
) -> tuple[Array | None, str | None]:
    """(values - corrupted) / (clean - corrupted), or why there is none."""
    if clean is None or corrupted is None:
        return None, "there is no corrupted run to count from"
    with np.errstate(over="ignore", invalid="ignore"):
        between = clean - corrupted
        if not np.isfinite(between):
            return None, "the clean or the corrupted measure is not finite"
        if between == 0.0:
            return None, "the clean and the corrupted measure are the same"
        return (values - corrupted) / between, None
