"""Exact derivatives of a run."""

from fastapi import Request, Response

from schemas.jacobian import JacobianRequest
from schemas.jacobian_answers import JacobianAnswer
from service import calls, openapi
from service.example_bodies import jacobian as bodies
from service.forms import form
from service.questions import jacobian as question
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
    "/jacobian",
    responses={
        **openapi.problem_responses(*_REFUSALS),
        200: openapi.tensors(JacobianAnswer, bodies.ANSWER),
    },
    openapi_extra=openapi.body(JacobianRequest, bodies.REQUESTS),
)
async def jacobian(request: Request) -> Response:
    """Differentiate a state by an earlier one, or a number of a run by its stages.

    `of` and `by`: the matrix I + dF/dx of a pair of positions, its singular values, its identity
    apart. `measure` and `gradients`: the gradient of a logit or of a state along a direction, and
    activation · gradient.
    """
    return await calls.respond(request, JacobianRequest, question.work, form.ALL)
