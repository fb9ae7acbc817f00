"""A call that computes, from a request to its response: decode, work, encode, in a worker thread.

`work` takes the request as parsed, the state of the service and a `check` that may raise between
steps; it gives the members of the answer in their order. The form of the answer is chosen from the
request's headers and its `format`.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from fastapi import Request, Response

from compute.errors import ComputeError
from schemas.base import Asked
from service import bodies, errors, state, streams
from service.bodies import Sent
from service.forms import apart, binary, form, lines, text
from service.forms.apart import Apart
from service.forms.form import Form
from service.forms.tensors import Piece
from service.pieces import Pieces
from service.quick import Patience, Slower
from service.state import State
from service.streams import Begun, Step, Steps, Stream

Model = TypeVar("Model", bound=Asked)
Result = TypeVar("Result")
Check = Callable[[], None]
Work = Callable[[Model, State, Check], Mapping[str, object]]
Streamed = Callable[[Model, State, Check], Steps | None]
"""The steps of an answer as it is computed; None where a request has its answer whole."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in pieces, the seconds each step took, and those its thread computed in all."""

    pieces: Sequence[Piece]
    seconds: Mapping[str, float]
    computed: float


async def respond(
    request: Request,
    model: type[Model],
    work: Work[Model],
    offered: Sequence[str] = form.JSON_ALONE,
    streamed: Streamed[Model] | None = None,
) -> Response:
    """The response to a request whose body is a model; errors are problems further out.

    As JSON Lines it is a stream, made while it is sent: by the steps of `streamed`, or else those
    of an answer that is worked out whole.
    """
    here = state.of(request)
    if request.scope.get("http_version") == "1.0":  # it has no chunks, in which a stream would come
        offered = [media for media in offered if not Form(media).is_lines]
    async with bodies.read(request, here.settings, here.held, offered) as sent:
        if Form(sent.accepted).is_lines:
            ticket = here.admission.ticket()
            steps = partial(_steps, work, streamed, ticket.check)
            begun = await here.admission.run(
                begin, sent, model, steps, here, receive=request.receive, ticket=ticket
            )
            return Stream(begun, ticket, here, sent.accepted)
        found = await _answered(request, sent, model, work, here)
    return Pieces(
        found.pieces,
        found.seconds,
        media=sent.accepted,
        held=here.held,
        send_seconds=here.settings.send_seconds,
    )


async def _answered(
    request: Request, sent: Sent, model: type[Model], work: Work[Model], here: State
) -> Answer:
    """The whole answer: where it is quick to make at once, else from a worker thread."""
    outline = here.quick.outline(sent, model.__name__)
    if here.quick.knows(outline):
        with suppress(Slower):
            quickly = here.admission.at_once(answer, sent, model, work, here, Patience())
            here.quick.note(outline, quickly.computed)
            return quickly
    ticket = here.admission.ticket()
    found = await here.admission.run(
        answer, sent, model, work, here, ticket.check, receive=request.receive, ticket=ticket
    )
    here.quick.note(outline, found.computed)
    return found


def answer(sent: Sent, model: type[Model], work: Work[Model], here: State, check: Check) -> Answer:
    """The whole answer to a body; `check` may raise between steps to stop the work."""
    begun = time.thread_time()
    members, chosen, seconds = _done(sent, model, here, lambda asked, own: work(asked, own, check))
    start = time.perf_counter()
    pieces = encoded(members, chosen)
    seconds = {**seconds, "encode": time.perf_counter() - start}
    return Answer(pieces, seconds, time.thread_time() - begun)


def begin(
    sent: Sent, model: type[Model], steps: Callable[[Model, State], Steps], here: State
) -> Begun:
    """The stream of an answer to a body, its first step made: what can be refused is refused."""

    def first(asked: Model, own: State) -> tuple[Step, Steps]:
        made = steps(asked, own)
        return next(made), made

    (step, rest), _, seconds = _done(sent, model, here, first)
    return Begun(step, rest, seconds)


def _done(
    sent: Sent, model: type[Model], here: State, do: Callable[[Model, State], Result]
) -> tuple[Result, Form, Mapping[str, float]]:
    """What is done with a request as parsed, in the form of its answer; and the seconds it took."""
    start = time.perf_counter()
    asked = bodies.parse(sent, model, here.settings)
    chosen = form.of(sent.accepted, getattr(asked, "format", None))
    parsed = time.perf_counter()
    try:
        result = do(asked, replace(here, form=chosen))
    except (ComputeError, errors.ServiceError) as error:
        raise errors.in_body(error, bodies.packed(sent)) from error
    return result, chosen, {"parse": parsed - start, "compute": time.perf_counter() - parsed}


def encoded(members: Mapping[str, object], chosen: Form) -> Sequence[Piece]:
    """The members of an answer in a form that is no stream, in pieces."""
    if chosen.media == form.SAFETENSORS:
        return binary.answer(members, chosen)
    return text.answer(members, chosen)


def _steps(
    work: Work[Model],
    streamed: Streamed[Model] | None,
    check: Check,
    asked: Model,
    own: State,
) -> Steps:
    as_computed = None if streamed is None else streamed(asked, own, check)
    return _of_whole(work, asked, own, check) if as_computed is None else as_computed


def _of_whole(work: Work[Model], asked: Model, own: State, check: Check) -> Steps:
    """The steps of an answer that is known before its first line."""
    found = apart.taken(work(asked, own, check), own.form)
    yield Step(
        lines.line(found.answer, own.form),
        sum(shown.values.nbytes for shown in found.entries.values()),
    )
    yield from streams.gathered(_after_head(found, own.form))


def _after_head(found: Apart, chosen: Form) -> Iterator[bytes]:
    for name, shown in found.entries.items():
        yield from lines.of_tensor({"entry": name}, shown, chosen)
    yield lines.line({"end": True}, chosen)
