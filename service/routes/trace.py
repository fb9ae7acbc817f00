"""The main call."""

from fastapi import Request, Response

from schemas.answers import TraceAnswer
from schemas.plan_answers import TracePlanAnswer
from schemas.trace import TraceRequest
from service import calls, examples, openapi, streamed_trace, traces
from service.forms import form
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
    "/trace",
    responses={
        **openapi.problem_responses(*_REFUSALS),
        200: openapi.tensors(TraceAnswer, examples.ANSWER, TracePlanAnswer),
    },
    openapi_extra=openapi.body(TraceRequest, examples.TRACE),
)
async def trace(request: Request) -> Response:
    """Run a model on an input: every state of the stream, every head's contribution.

    Without `select`: every primary stage and `attn.head_out`; all of it, or a 413 that says how
    large each part is and what to select.
    """
    return await calls.respond(request, TraceRequest, traces.work, form.ALL, streamed_trace.steps)
