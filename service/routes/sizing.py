"""What a model holds, computes and takes."""

from fastapi import Request, Response

from schemas.sizing.answer import SizingAnswer
from schemas.sizing.request import SizingRequest
from service import calls, openapi
from service.example_bodies import sizing as bodies
from service.forms import form
from service.questions import sizing as question
from service.routes import routing

router = routing.router("sizing")

_REFUSALS = (*openapi.OF_A_BODY, *openapi.OF_A_RUN, *openapi.OF_A_SIZING)


@router.post(
    "/sizing",
    responses={
        **openapi.problem_responses(*_REFUSALS),
        200: openapi.answer(SizingAnswer, bodies.ANSWER),
    },
    openapi_extra=openapi.body(SizingRequest, bodies.REQUESTS, form.JSON_ALONE),
)
async def sizing(request: Request) -> Response:
    """Size a model from its config alone: parameters, FLOPs, memory, times, part by part.

    Exact whole numbers, each with its formula; no weight is read and nothing is run.
    """
    return await calls.respond(request, SizingRequest, question.work)
