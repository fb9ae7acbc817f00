"""Tables of activation patching."""

from fastapi import Request, Response

from schemas.sweep import SweepRequest
from schemas.sweep_answers import SweepAnswer
from service import calls, openapi
from service.example_bodies import sweep as bodies
from service.forms import form
from service.questions import sweep as question
from service.routes import routing

router = routing.router("trace")

_REFUSALS = (
    *openapi.OF_A_BODY,
    *openapi.OF_A_RUN,
    "unknown-model",
    "config-rule",
    "shape-mismatch",
    "invalid-input",
    "unanswerable",
)


@router.post(
    "/sweep",
    responses={
        **openapi.problem_responses(*_REFUSALS),
        200: openapi.tensors(SweepAnswer, bodies.ANSWER),
    },
    openapi_extra=openapi.body(SweepRequest, bodies.REQUESTS),
)
async def sweep(request: Request) -> Response:
    """Change one stage at each cell of a grid, and read a number off each run.

    Each head, or each position of each block, in one call: tables of activation patching,
    ablation and direct effects. A cell goes on from the block it changes; what is below is run
    once.
    """
    return await calls.respond(request, SweepRequest, question.work, form.ALL)
