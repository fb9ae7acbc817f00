"""Who computes when: a bounded queue in front of a few worker threads, and a deadline.

The work itself asks `check()` between its steps; that is what stops it, at once and for good,
when its time is over or its client is gone.
"""

import asyncio
import math
import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TypeVar, TypeVarTuple

import anyio
from anyio import to_thread
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from service import errors
from service.held import Held

Args = TypeVarTuple("Args")
Result = TypeVar("Result")

_SHARE_OF_LAST = 0.2
"""How much the last run counts in the running mean that Retry-After is made of."""


class Ticket:
    """One request's turn: until when it may compute, and whether it was told to stop before."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = math.inf
        self.stopped = False
        self.gone = False

    def carry(self, work: Callable[[*Args], Result], args: tuple[*Args]) -> Result:
        """Do the work, in the worker thread."""
        self._until = time.monotonic() + self._seconds
        _TICKET.set(self)  # in a copy of the context: each run has its own
        return work(*args)

    def check(self) -> None:
        """Raise where the work should stop."""
        if self.stopped:
            raise ClientDisconnect
        if time.monotonic() > self._until:
            raise errors.Deadline(self._seconds)


_TICKET: ContextVar[Ticket | None] = ContextVar("ticket", default=None)


def check() -> None:
    """Raise where the work of this thread should stop: call it between steps.

    Does nothing outside `Admission.run`.
    """
    ticket = _TICKET.get()
    if ticket is not None:
        ticket.check()


class Admission:
    """Runs work in `slots` threads while at most `queue` more requests wait.

    With `held` nothing begins while it is full: another answer would have no room.
    """

    def __init__(self, *, slots: int, queue: int, seconds: float, held: Held | None = None) -> None:
        self._places = slots + queue
        self._slots = slots
        self._seconds = seconds
        self._held = held or Held(math.inf)
        self._threads = anyio.CapacityLimiter(slots)
        self.inside = 0
        """How many compute or wait."""
        self.runs = 0
        """How many have computed, or were stopped; uploads too."""
        self._mean_seconds = 0.0
        self.draining = False

    async def run(
        self, work: Callable[[*Args], Result], *args: *Args, receive: Receive | None = None
    ) -> Result:
        """The work's result, from a worker thread.

        Raises Busy where the queue is full, no turn comes in time or too much is held at its turn,
        Draining, Deadline, what the work raises, and with `receive` (of a request whose body was
        read) ClientDisconnect.
        """
        async with self._place():
            ticket = Ticket(self._seconds)
            with anyio.move_on_after(self._seconds) as turn:
                async with _watching(ticket, turn, receive):
                    return await self._timed(ticket, work, args)
            raise ClientDisconnect if ticket.gone else errors.Busy(self.retry_after)

    @property
    def retry_after(self) -> int:
        """In how many seconds those inside should be through, at least 1."""
        seconds = self._mean_seconds * self.inside / self._slots
        return math.ceil(min(max(seconds, 1.0), self._seconds + 1))

    def note(self, seconds: float) -> None:
        """Count how long a run took in the running mean."""
        self._mean_seconds += _SHARE_OF_LAST * (seconds - self._mean_seconds)

    def drain(self) -> None:
        """Take nothing new; what is inside goes on."""
        self.draining = True

    def refuse_if_draining(self) -> None:
        """Raise Draining once the service is stopping."""
        if self.draining:
            raise errors.Draining(self.retry_after)

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        self.refuse_if_draining()
        if self.inside >= self._places:
            raise errors.Busy(self.retry_after)
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    async def _timed(
        self, ticket: Ticket, work: Callable[[*Args], Result], args: tuple[*Args]
    ) -> Result:
        def carried() -> Result:
            self._held.refuse_if_full()
            start = time.monotonic()
            try:
                return ticket.carry(work, args)
            except BaseException as error:
                _let_go(error)
                raise
            finally:
                self.runs += 1
                self.note(time.monotonic() - start)

        try:
            return await to_thread.run_sync(carried, limiter=self._threads)
        except asyncio.CancelledError:
            ticket.stopped = True  # nobody waits for the result: the thread must not go on
            raise


def _let_go(error: BaseException) -> None:
    """Empty the frames an error comes from: it outlives them, and their arrays must not."""
    told: BaseException | None = error
    while told is not None:
        traceback.clear_frames(told.__traceback__)
        told = told.__cause__ or told.__context__


@asynccontextmanager
async def _watching(
    ticket: Ticket, turn: anyio.CancelScope, receive: Receive | None
) -> AsyncIterator[None]:
    """Meanwhile, stop the work (or its waiting) when the client goes away."""
    if receive is None:
        yield
        return
    watcher = asyncio.create_task(_stop_when_gone(ticket, turn, receive))
    try:
        yield
    finally:
        watcher.cancel()


async def _stop_when_gone(ticket: Ticket, turn: anyio.CancelScope, receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    ticket.gone = ticket.stopped = True
    turn.cancel()
