"""From a trace request to its run: everything checked and weighed before anything is made."""

from dataclasses import dataclass

from compute import selection
from compute.cost import Cost
from compute.trace import Run
from schemas.trace import TraceRequest
from service import limits
from service.modelled import Modelled, Weighted
from service.reading import Reading
from service.traced_work import Work, check_work


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A run that is within the limits, what it costs, whose model it is, what it reads."""

    run: Run
    cost: Cost
    model: Modelled
    weighted: Weighted
    reading: Reading


def weighed(request: TraceRequest, model: Modelled) -> tuple[Reading, Work]:
    """The input as read, and one run of the selection on it, within the limits."""
    read = model.read(request.input)
    scene = model.scene(read.inputs)
    work = Work(scene, selection.resolve(request.selected(), scene), request.dtype)
    check_work(work, model.settings)
    limits.check_tokens(read.inputs, model.text, model.settings)
    return read, work


def plan(request: TraceRequest, model: Modelled) -> Plan:
    """The Plan of a request, or the error that says why there is none.

    In this order: the input, the selection, limits of work, the weights. Weights are made last.
    """
    read, work = weighed(request, model)
    weighted = model.weights(work.memory_bytes)
    return Plan(
        run=Run(
            config=model.config,
            weights=weighted.weights,
            inputs=read.inputs,
            selection=work.selected,
            check=model.check,
        ),
        cost=work.cost,
        model=model,
        weighted=weighted,
        reading=read,
    )
