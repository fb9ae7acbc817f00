"""What wrote a state, part by part."""

from fastapi import Request, Response

from schemas.contribution_answers import ContributionsAnswer
from schemas.contributions import ContributionsRequest
from service import calls, openapi
from service.example_bodies import contributions as bodies
from service.forms import form
from service.questions import contributions as question
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
    "/contributions",
    responses={
        **openapi.problem_responses(*_REFUSALS),
        200: openapi.tensors(ContributionsAnswer, bodies.ANSWER),
    },
    openapi_extra=openapi.body(ContributionsRequest, bodies.REQUESTS),
)
async def contributions(request: Request) -> Response:
    """Split a state of the stream into what wrote it: by block, head, source position, neuron.

    Of each part its size, what it gives of the state, and what it gives a logit: with the final
    norm's scale held the parts add up to the logit, with it recomputed each state is read out by
    itself, the logit lens. Whether the parts add up is in the answer.
    """
    return await calls.respond(request, ContributionsRequest, question.work, form.ALL)
