"""Cached decoding."""

from fastapi import Request, Response

from schemas.decode import DecodeRequest
from schemas.decode_answers import DecodeAnswer
from service import calls, openapi
from service.example_bodies import decode as examples
from service.forms import form
from service.questions import decode as question
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
    "/decode",
    responses={
        **openapi.problem_responses(*_REFUSALS),
        200: openapi.tensors(DecodeAnswer, examples.ANSWER),
    },
    openapi_extra=openapi.body(DecodeRequest, examples.DECODE),
)
async def decode(request: Request) -> Response:
    """Run rows after a cache, and let the model go on: each step's states, logits and top tokens.

    The cache travels: an answer's is sent back with the next rows. With a causal mask they have
    the states of one run over all rows.
    """
    return await calls.respond(request, DecodeRequest, question.work, form.ALL)
