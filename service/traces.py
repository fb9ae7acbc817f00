"""POST /v1/trace, from bytes to bytes: decode, plan, run, check, encode. For one worker thread."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from compute.errors import ComputeError
from compute.trace import Trace, identities_of, trace
from schemas.trace import TraceRequest
from service import bodies, encoding, errors, json_text, views
from service.plans import Plan, plan
from service.state import State


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as pieces of JSON, and the seconds each step took."""

    pieces: list[bytes]
    seconds: Mapping[str, float]


def answer(body: bytes, state: State, check: Callable[[], None]) -> Answer:
    """The answer of a trace request; `check` may raise between stages to stop the work."""
    clock = [time.perf_counter()]
    request = bodies.parse(body, TraceRequest, state.settings)
    try:
        planned = plan(request, state.store, state.settings, check)
    except ComputeError as error:
        raise errors.in_body(error, json_text.load(body)) from error
    clock.append(time.perf_counter())
    try:
        traced = trace(planned.run)
        after = _after(planned, traced, request.identities)
    finally:
        state.store.settle(planned.checkpoint, request.dtype)
    clock.append(time.perf_counter())
    before = {"model": views.model(planned), "input": views.read(planned)}
    pieces = encoding.answer(before, traced, after)
    clock.append(time.perf_counter())
    steps = zip(("parse", "compute", "encode"), clock, clock[1:], strict=False)
    return Answer(pieces, {step: end - start for step, start, end in steps})


def _after(planned: Plan, traced: Trace, identities: bool) -> Mapping[str, object]:
    return {
        "absent": planned.run.selection.absent,
        "fully_masked_rows": views.fully_masked_rows(traced),
        "next_token": views.next_token(planned, traced),
        "identities": identities_of(traced) if identities else None,
        "cost": views.cost(planned.cost),
    }
