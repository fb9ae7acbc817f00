"""Which models hold so much."""

from fastapi import Request, Response

from schemas.sizing.inverse import InverseAnswer, InverseRequest
from service import calls, openapi
from service.example_bodies import inverse as bodies
from service.forms import form
from service.questions import inverse as question
from service.routes import routing

router = routing.router("sizing")

_REFUSALS = (*openapi.OF_A_BODY, *openapi.OF_A_RUN, *openapi.OF_A_SIZING)


@router.post(
    "/sizing/inverse",
    responses={
        **openapi.problem_responses(*_REFUSALS),
        200: openapi.answer(InverseAnswer, bodies.ANSWER),
    },
    openapi_extra=openapi.body(InverseRequest, bodies.REQUESTS, form.JSON_ALONE),
)
async def sizing_inverse(request: Request) -> Response:
    """Find the models of a style whose exact count is nearest to a target.

    Parameters, bytes of cache or FLOPs for a token, or bytes of weights; the search is exact over
    the whole grid of sizes that is asked for.
    """
    return await calls.respond(request, InverseRequest, question.work)
