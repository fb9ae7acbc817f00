"""Rotations by themselves."""

from fastapi import Request, Response

from schemas.rope import RopeRequest
from schemas.rope_answers import RopeAnswer
from service import calls, openapi
from service.example_bodies import rope as bodies
from service.forms import form
from service.questions import rope as question
from service.routes import routing

router = routing.router("trace")

_REFUSALS = (
    *openapi.OF_A_BODY,
    *openapi.OF_A_RUN,
    "unknown-model",
    "config-rule",
    "shape-mismatch",
    "unanswerable",
)


@router.post(
    "/rope",
    responses={
        **openapi.problem_responses(*_REFUSALS),
        200: openapi.tensors(RopeAnswer, bodies.ANSWER),
    },
    openapi_extra=openapi.body(RopeRequest, bodies.REQUESTS),
)
async def rope(request: Request) -> Response:
    """Turn a query and a key to positions: angles, rotated pairs, dot products.

    One pair by its angle, every pair of a head, or those of a block of a model.
    """
    return await calls.respond(request, RopeRequest, question.work, form.ALL)
