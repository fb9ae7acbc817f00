"""An answer that is made while it is sent: step by step, each in a turn of its own.

Between two steps, and while its reader is waited for, others have the slot.
"""

import threading
import time
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass

import anyio
from anyio import to_thread
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service import admission, errors, middleware, pieces
from service.admission import Ticket
from service.pieces import CHUNK_BYTES, Cut, Reader, log
from service.state import State

LAST_SECONDS = 2.0
"""How long a stream goes on once the service is stopping."""

GATHERED_SECONDS = 0.002
"""A turn costs 0.2 ms: lines that are made faster than that share one."""

_FAREWELL_SECONDS = 0.5
"""How long its reader may take the line that says why it ends."""


@dataclass(frozen=True, slots=True)
class Step:
    """Whole lines; with the first of them, how many bytes the stream will hold at most."""

    lines: bytes
    holds: int = 0


Steps = Generator[Step, None, None]
"""What makes a stream: run, and in the end closed, by worker threads."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A stream whose first step is made, and the seconds that each part of that took."""

    first: Step
    rest: Steps
    seconds: Mapping[str, float]


def gathered(lines: Iterable[bytes]) -> Steps:
    """Steps of lines. Those made within `GATHERED_SECONDS` go out together, with one more at most;
    an empty line sends out what was made before it. What was made is told before a failure is."""
    waiting: list[bytes] = []
    since = time.monotonic()
    try:
        for line in lines:
            if line:
                waiting.append(line)
            if waiting and (not line or _is_enough(waiting, since)):
                yield Step(b"".join(waiting))
                waiting.clear()
                since = time.monotonic()
    except Exception:
        if waiting:
            yield Step(b"".join(waiting))
        raise
    if waiting:
        yield Step(b"".join(waiting))


def _is_enough(lines: list[bytes], since: float) -> bool:
    return time.monotonic() - since > GATHERED_SECONDS or sum(map(len, lines)) >= CHUNK_BYTES


class Stream(Response):
    """Sends a stream; what fails once it has begun is told by a last line, {"error": problem}.

    `deadline_seconds` bounds how long it computes, `stream_seconds` how long it takes in all, and
    a client that is too slow a Reader is cut off. It ends when its client goes away, and when the
    service has been stopping for `LAST_SECONDS`.
    """

    def __init__(self, begun: Begun, ticket: Ticket, here: State, media: str) -> None:
        super().__init__(headers=pieces.headers(begun.seconds), media_type=media)
        del self.headers["Content-Length"]
        self._first = begun.first
        self._rest = begun.rest
        self._ticket = ticket
        self._here = here
        self._within_step = False
        self._running = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all of it, and close it whatever happens; Busy where there is no room for it."""
        streams = self._here.streams
        with streams.count(0) as share:
            try:
                if streams.total:  # alone it fits: a request's own memory was weighed
                    streams.refuse_if_full(self._first.holds)
                share.resize(self._first.holds)
                await self._watched(scope, receive, send)
            finally:
                with anyio.CancelScope(shield=True):
                    await to_thread.run_sync(self._close)

    async def _watched(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it for as long as its client is there."""
        reader = Reader(send, self._here.settings.send_seconds)
        with anyio.CancelScope() as talk:
            async with admission.watching(self._ticket, talk, receive):
                try:
                    await reader.head(self.raw_headers)
                    await self._bounded(reader)
                    await reader.end()
                except Cut:
                    await pieces.cut(scope)
        if talk.cancelled_caught:
            raise ClientDisconnect

    async def _bounded(self, reader: Reader) -> None:
        """Send every step, or as many as there is time for and the reason why there are no more."""
        seconds = self._here.settings.stream_seconds
        try:
            with anyio.move_on_after(seconds) as bound:
                await self._steps(reader)
            if bound.cancelled_caught:
                raise errors.Deadline(seconds)
        except (Cut, ClientDisconnect):
            raise
        except Exception as error:
            await self._farewell(reader, error)

    async def _steps(self, reader: Reader) -> None:
        step: Step | None = self._first
        while step is not None:
            self._within_step = True
            await reader.take([step.lines])
            self._within_step = False
            if self._here.admission.drained_for > LAST_SECONDS:
                raise errors.Draining(self._here.admission.retry_after)
            step = await self._here.admission.step(self._ticket, self._next)

    async def _farewell(self, reader: Reader, error: Exception) -> None:
        """Say in a last line why there are no more; cut off who does not take it, or has half a
        line before it."""
        told = middleware.respond(error, self._here.settings.faults).body
        log.info("A stream ended before its end: %s.", errors.refusal_of(error).code)
        if self._within_step:
            raise Cut
        with anyio.move_on_after(_FAREWELL_SECONDS) as patience:
            await reader.take([b'{"error":', told, b"}\n"])
        if patience.cancelled_caught:
            raise Cut

    def _next(self) -> Step | None:
        with self._running:
            return next(self._rest, None)

    def _close(self) -> None:
        """Let everything go, once the step that may be running has stopped."""
        self._ticket.stopped = True
        with self._running:
            self._rest.close()
        self._here.admission.note(self._ticket.spent)
