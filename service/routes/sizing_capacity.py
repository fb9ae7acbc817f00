"""What fits into a memory."""

from fastapi import Request, Response

from schemas.sizing.capacity import CapacityAnswer, CapacityRequest
from service import calls, openapi
from service.example_bodies import capacity as bodies
from service.forms import form
from service.questions import capacity as question
from service.routes import routing

router = routing.router("sizing")


@router.post(
    "/sizing/capacity",
    responses={
        **openapi.problem_responses(
            *openapi.OF_A_BODY, *openapi.OF_A_RUN, "unknown-model", "config-rule", "unanswerable"
        ),
        200: openapi.answer(CapacityAnswer, bodies.ANSWER),
    },
    openapi_extra=openapi.body(CapacityRequest, bodies.REQUESTS, form.JSON_ALONE),
)
async def sizing_capacity(request: Request) -> Response:
    """The most positions or sequences that fit into a memory, exactly, and what stops them.

    Weights, cache and activations by their closed forms; one more is shown not to fit.
    """
    return await calls.respond(request, CapacityRequest, question.work)
