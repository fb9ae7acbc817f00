"""POST /v1/trace: plan, run, check. The work of one worker thread."""

from collections.abc import Callable, Mapping

from compute.interventions import intervened
from compute.trace import Trace, identities_of, trace
from schemas.trace import TraceRequest
from service import intervening, modelled, trace_plans, views
from service.forms import tensors
from service.modelled import Modelled
from service.plans import plan
from service.state import State


def work(request: TraceRequest, state: State, check: Callable[[], None]) -> Mapping[str, object]:
    """The members of the answer to a trace request; `check` may raise to stop the work."""
    with modelled.of(request.model, request.dtype, state, check) as model:
        if request.dry_run:
            return trace_plans.answer(request, model)
        return _intervened(request, model) if intervening.asks(request) else _plain(request, model)


def _plain(request: TraceRequest, model: Modelled) -> Mapping[str, object]:
    planned = plan(request, model)
    traced = trace(planned.run)
    return {
        "model": views.model(model, planned.weighted),
        "input": views.read(model, planned.reading),
        **_tensors(traced),
        **_told(request, model, traced),
        "cost": views.cost(planned.cost),
    }


def _intervened(request: TraceRequest, model: Modelled) -> Mapping[str, object]:
    """The run with its interventions, beside the one without them."""
    planned = intervening.plan(request, model)
    question = planned.question
    found = intervened.answer(question, planned.weighted.weights, model.check)
    beside, effects = intervening.shown(question, found)
    return {
        "model": views.model(model, planned.weighted),
        "input": views.read(model, planned.reading),
        **_tensors(found.after),
        **beside,
        **_told(request, model, found.after),
        **effects,
        "cost": views.cost(planned.cost),
    }


def _tensors(traced: Trace) -> Mapping[str, object]:
    return {"tensors": tensors.Tensors(tensors.of_trace(traced))}


def _told(request: TraceRequest, model: Modelled, traced: Trace) -> Mapping[str, object]:
    """What follows from a run, beside its tensors."""
    return {
        "absent": traced.run.selection.absent,
        "fully_masked_rows": views.fully_masked_rows(traced),
        "next_token": views.next_token(model, traced),
        "identities": identities_of(traced) if request.identities else None,
    }
