"""POST /v1/trace: plan, run, check. The work of one worker thread."""

from collections.abc import Callable, Mapping

from compute.trace import identities_of, trace
from schemas.trace import TraceRequest
from service import encoding, modelled, views
from service.plans import plan
from service.state import State


def work(request: TraceRequest, state: State, check: Callable[[], None]) -> Mapping[str, object]:
    """The members of the answer to a trace request; `check` may raise to stop the work."""
    with modelled.of(request.model, request.dtype, state, check) as model:
        planned = plan(request, model)
        traced = trace(planned.run)
        identities = identities_of(traced) if request.identities else None
    return {
        "model": views.model(model, planned.weighted),
        "input": views.read(model, planned.reading),
        "tensors": encoding.Tensors(encoding.of_trace(traced)),
        "absent": planned.run.selection.absent,
        "fully_masked_rows": views.fully_masked_rows(traced),
        "next_token": views.next_token(model, traced),
        "identities": identities,
        "cost": views.cost(planned.cost),
    }
