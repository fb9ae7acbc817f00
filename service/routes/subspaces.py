"""Subspaces, circuits and composition."""

from fastapi import Request, Response

from schemas.subspaces import SubspacesRequest
from schemas.subspaces_answers import SubspacesAnswer
from service import calls, openapi
from service.example_bodies import subspaces as examples
from service.forms import form
from service.questions import subspaces as questions
from service.routes import routing

router = routing.router("subspaces")

_REFUSALS = (
    *openapi.OF_A_BODY,
    *openapi.OF_A_RUN,
    "unknown-model",
    "config-rule",
    "shape-mismatch",
    "unanswerable",
)


@router.post(
    "/subspaces",
    responses={
        **openapi.problem_responses(*_REFUSALS),
        200: openapi.tensors(SubspacesAnswer, examples.ANSWER),
    },
    openapi_extra=openapi.body(SubspacesRequest, examples.REQUESTS),
)
async def subspaces(request: Request) -> Response:
    """See where heads write, what reads it, and how heads compose, from the weights alone.

    Each score stands beside what unrelated random matrices of the same shapes give.
    """
    return await calls.respond(request, SubspacesRequest, questions.work, form.ALL)
