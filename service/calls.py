"""A call that computes, from a request to its response: decode, work, encode, in a worker thread.

`work` takes the request as parsed, the state of the service and a `check` that may raise between
steps; it gives the members of the answer in their order.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from fastapi import Request, Response

from compute.errors import ComputeError
from schemas.base import Asked
from service import admission, bodies, encoding, errors, json_text, state
from service.pieces import JsonPieces
from service.state import State

Model = TypeVar("Model", bound=Asked)
Check = Callable[[], None]
Work = Callable[[Model, State, Check], Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as pieces of JSON, and the seconds each step took."""

    pieces: list[bytes]
    seconds: Mapping[str, float]


async def respond(request: Request, model: type[Model], work: Work[Model]) -> Response:
    """The response to a request whose body is a model; errors are problems further out."""
    here = state.of(request)
    async with bodies.read(request, here.settings, here.held) as body:
        found = await here.admission.run(
            answer, body, model, work, here, admission.check, receive=request.receive
        )
    send_seconds = here.settings.send_seconds
    return JsonPieces(found.pieces, found.seconds, held=here.held, send_seconds=send_seconds)


def answer(body: bytes, model: type[Model], work: Work[Model], here: State, check: Check) -> Answer:
    """The answer to a body; `check` may raise between steps to stop the work."""
    clock = [time.perf_counter()]
    asked = bodies.parse(body, model, here.settings)
    clock.append(time.perf_counter())
    try:
        members = work(asked, here, check)
    except (ComputeError, errors.ServiceError) as error:
        raise errors.in_body(error, _packed(body)) from error
    clock.append(time.perf_counter())
    pieces = encoding.answer(members)
    clock.append(time.perf_counter())
    steps = zip(("parse", "compute", "encode"), clock, clock[1:], strict=False)
    return Answer(pieces, {step: end - start for step, start, end in steps})


def _packed(body: bytes) -> object:
    """The body as JSON where a tensor of it may be base64: faults have no places inside of that."""
    return json_text.load(body) if b'"data"' in body else None
