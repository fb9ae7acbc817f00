"""Two runs side by side."""

from fastapi import Request, Response

from schemas.compare import CompareRequest
from schemas.compare_answers import CompareAnswer
from service import calls, openapi
from service.example_bodies import compare as bodies
from service.questions import compare as question
from service.routes import routing

router = routing.router("trace")

_REFUSALS = (
    *openapi.OF_A_BODY,
    *openapi.OF_A_RUN,
    "unknown-model",
    "config-rule",
    "shape-mismatch",
    "invalid-input",
    "invalid-selection",
    "invalid-intervention",
    "unanswerable",
)


@router.post(
    "/compare",
    responses={
        **openapi.problem_responses(*_REFUSALS),
        200: openapi.answer(CompareAnswer, bodies.ANSWER),
    },
    openapi_extra=openapi.body(CompareRequest, bodies.REQUESTS),
)
async def compare(request: Request) -> Response:
    """Compare two runs stage by stage, and name the first stage in which they differ.

    Of different configs, weights, inputs or interventions: each is written as a trace request.
    """
    return await calls.respond(request, CompareRequest, question.work)
