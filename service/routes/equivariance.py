"""What permuting rows permutes."""

from fastapi import Request, Response

from schemas.equivariance import EquivarianceRequest
from schemas.equivariance_answers import EquivarianceAnswer
from service import calls, openapi
from service.example_bodies import equivariance as bodies
from service.questions import equivariance as question
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
    "unanswerable",
)


@router.post(
    "/equivariance",
    responses={
        **openapi.problem_responses(*_REFUSALS),
        200: openapi.answer(EquivarianceAnswer, bodies.ANSWER),
    },
    openapi_extra=openapi.body(EquivarianceRequest, bodies.REQUESTS),
)
async def equivariance(request: Request) -> Response:
    """Permute the rows of an input: which stages permute with them, and by how much others differ.

    Four cases: the model as it is, without positions, without its masks, without both.
    """
    return await calls.respond(request, EquivarianceRequest, question.work)
