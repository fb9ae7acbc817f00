"""What fits into a memory."""

from fastapi import APIRouter, Request, Response

from schemas.sizing.capacity import CapacityAnswer, CapacityRequest
from service import calls, openapi
from service.example_bodies import capacity as bodies
from service.questions import capacity as question

router = APIRouter(tags=["sizing"])


@router.post(
    "/sizing/capacity",
    responses={
        **openapi.problem_responses(
            *openapi.OF_A_BODY, *openapi.OF_A_RUN, "unknown-model", "config-rule", "unanswerable"
        ),
        200: openapi.answer(CapacityAnswer, bodies.ANSWER),
    },
    openapi_extra=openapi.body(CapacityRequest, bodies.REQUESTS),
)
async def sizing_capacity(request: Request) -> Response:
    """The most positions or sequences that fit into a memory, exactly, and what stops them.

    Weights, cache and activations by their closed forms; one more is shown not to fit.
    """
    return await calls.respond(request, CapacityRequest, question.work)
