"""Models against one another."""

from fastapi import Request, Response

from schemas.sizing.compare import SizingCompareAnswer, SizingCompareRequest
from service import calls, openapi
from service.example_bodies import sizing_compare as bodies
from service.forms import form
from service.questions import sizing_compare as question
from service.routes import routing

router = routing.router("sizing")

_REFUSALS = (*openapi.OF_A_BODY, *openapi.OF_A_RUN, *openapi.OF_A_SIZING)


@router.post(
    "/sizing/compare",
    responses={
        **openapi.problem_responses(*_REFUSALS),
        200: openapi.answer(SizingCompareAnswer, bodies.ANSWER),
    },
    openapi_extra=openapi.body(SizingCompareRequest, bodies.REQUESTS, form.JSON_ALONE),
)
async def sizing_compare(request: Request) -> Response:
    """Compare models part by part with the first of them, and tell which fields make it so.

    Parameters, FLOPs, bytes of cache and of weights; the fields in which the configs differ, each
    with what it moves, which sum to the difference.
    """
    return await calls.respond(request, SizingCompareRequest, question.work)
