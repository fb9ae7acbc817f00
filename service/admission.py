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
    """One request's turns: how long it may still compute, and whether it was told to stop."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = math.inf
        self.spent = 0.0
        """Seconds it has computed, in all its turns."""
        self.stopped = False
        self.gone = False

    def carry(self, work: Callable[[*Args], Result], args: tuple[*Args]) -> Result:
        """Do the work of a turn, in the worker thread."""
        start = time.monotonic()
        self._until = start + self._seconds - self.spent
        _TICKET.set(self)  # in a copy of the context: each turn has its own
        try:
            self.check()
            return work(*args)
        finally:
            self.spent += time.monotonic() - start

    def check(self) -> None:
        """Raise where the work should stop."""
        if self.stopped:
            raise ClientDisconnect
        if time.monotonic() > self._until:
            raise errors.Deadline(self._seconds)

    def leave(self) -> None:
        """The client has gone: nobody waits for the work."""
        self.gone = self.stopped = True


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
        self._drains_since = math.inf

    def ticket(self) -> Ticket:
        """For a request that will take several turns."""
        return Ticket(self._seconds)

    async def run(
        self,
        work: Callable[[*Args], Result],
        *args: *Args,
        receive: Receive | None = None,
        ticket: Ticket | None = None,
    ) -> Result:
        """The work's result, from a worker thread; with a ticket as the first of its turns.

        Raises Busy where the queue is full, no turn comes in time or too much is held at its turn,
        Draining, Deadline, what the work raises, and with `receive` (of a request whose body was
        read) ClientDisconnect.
        """
        async with self._place():
            here = ticket or self.ticket()
            with anyio.move_on_after(self._seconds) as turn:
                async with watching(here, turn, receive):
                    return await self._timed(here, self._first, (here, work, args))
            raise ClientDisconnect if here.gone else errors.Busy(self.retry_after)

    def at_once(self, work: Callable[[*Args], Result], *args: *Args) -> Result:
        """The result of work that takes no longer than a thread takes to be handed it: on the event
        loop, beside the slots. Raises what `run` raises of what it is held against."""
        self.refuse_if_draining()
        self._held.refuse_if_full()
        self.runs += 1
        return work(*args)

    async def step(self, ticket: Ticket, work: Callable[[*Args], Result], *args: *Args) -> Result:
        """Another turn of a request that has begun: behind those that wait now, and not refused
        for their number. Raises what `run` raises, but for Draining."""
        self.inside += 1
        try:
            with anyio.move_on_after(self._seconds):
                return await self._timed(ticket, ticket.carry, (work, args))
            raise errors.Busy(self.retry_after)
        finally:
            self.inside -= 1

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
        self._drains_since = min(self._drains_since, time.monotonic())

    @property
    def draining(self) -> bool:
        """Whether the service is stopping."""
        return self.drained_for >= 0

    @property
    def drained_for(self) -> float:
        """For how many seconds the service has been stopping; before that it is below 0."""
        return time.monotonic() - self._drains_since

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

    def _first(self, ticket: Ticket, work: Callable[[*Args], Result], args: tuple[*Args]) -> Result:
        self._held.refuse_if_full()
        try:
            return ticket.carry(work, args)
        finally:
            self.note(ticket.spent)

    async def _timed(
        self, ticket: Ticket, work: Callable[[*Args], Result], args: tuple[*Args]
    ) -> Result:
        def carried() -> Result:
            try:
                return work(*args)
            except BaseException as error:
                _let_go(error)
                raise
            finally:
                self.runs += 1

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
async def watching(
    ticket: Ticket, turn: anyio.CancelScope, receive: Receive | None
) -> AsyncIterator[None]:
    """Meanwhile, stop the work, or what waits in the scope, when the client goes away."""
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
    ticket.leave()
    turn.cancel()
