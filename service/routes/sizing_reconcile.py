"""Why a published count of parameters is not the exact one."""

from fastapi import Request, Response

from schemas.sizing.reconcile import ReconcileAnswer, ReconcileRequest
from service import calls, openapi
from service.example_bodies import reconcile as bodies
from service.forms import form
from service.questions import reconcile as question
from service.routes import routing

router = routing.router("sizing")

_REFUSALS = (*openapi.OF_A_BODY, *openapi.OF_A_RUN, "unknown-model", "config-rule")


@router.post(
    "/sizing/reconcile",
    responses={
        **openapi.problem_responses(*_REFUSALS),
        200: openapi.answer(ReconcileAnswer, bodies.ANSWER),
    },
    openapi_extra=openapi.body(ReconcileRequest, bodies.REQUESTS, form.JSON_ALONE),
)
async def sizing_reconcile(request: Request) -> Response:
    """Take a published count of parameters apart into named differences from the exact one.

    Buffers, copies, poolers, readouts, padded vocabularies, experts, assumed shapes: sums of up to
    three, those that give the published number exactly first.
    """
    return await calls.respond(request, ReconcileRequest, question.work)
