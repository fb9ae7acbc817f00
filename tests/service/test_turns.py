"""A request that takes several turns gives way between them, and has one deadline for all."""

import threading
import time
from collections.abc import Iterator

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from starlette.requests import ClientDisconnect

from service.admission import Admission
from service.errors import Busy, Deadline
from serving import until

STEP = 0.005
PATIENCE = 10


@pytest.fixture
def portal() -> Iterator[BlockingPortal]:
    """An event loop in another thread."""
    with start_blocking_portal() as opened:
        yield opened


def test_steps_come_after_those_that_wait(portal: BlockingPortal) -> None:
    admitted = Admission(slots=1, queue=2, seconds=PATIENCE)
    order: list[str] = []
    begun, finish = threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        assert finish.wait(PATIENCE)

    async def stream() -> None:
        ticket = admitted.ticket()
        await admitted.run(first, ticket=ticket)
        for at in range(2):
            await admitted.step(ticket, order.append, f"step {at}")

    streamed = portal.start_task_soon(stream)
    assert begun.wait(PATIENCE)
    waiting = [
        portal.start_task_soon(admitted.run, order.append, f"request {at}") for at in range(2)
    ]
    until(lambda: admitted.inside == 3)
    finish.set()
    for future in (streamed, *waiting):
        future.result(PATIENCE)
    assert order == ["request 0", "request 1", "step 0", "step 1"]
    assert admitted.inside == 0


def test_step_waits_where_the_queue_is_full(portal: BlockingPortal) -> None:
    admitted = Admission(slots=1, queue=0, seconds=PATIENCE)
    finish = threading.Event()
    first = portal.start_task_soon(admitted.run, finish.wait, PATIENCE)
    until(lambda: admitted.inside == 1)
    step = portal.start_task_soon(admitted.step, admitted.ticket(), lambda: "done")
    until(lambda: admitted.inside == 2)
    finish.set()
    assert step.result(PATIENCE) == "done"
    assert first.result(PATIENCE)


def test_step_that_gets_no_turn_in_time_is_refused_as_busy(portal: BlockingPortal) -> None:
    admitted = Admission(slots=1, queue=1, seconds=0.1)
    work = threading.Event()
    first = portal.start_task_soon(admitted.run, work.wait, PATIENCE)
    until(lambda: admitted.inside == 1)
    with pytest.raises(Busy):
        portal.call(admitted.step, admitted.ticket(), lambda: "too late")
    work.set()
    assert first.result(PATIENCE)


def test_deadline_adds_up_what_all_turns_computed_and_not_what_lies_between(
    portal: BlockingPortal,
) -> None:
    admitted = Admission(slots=1, queue=0, seconds=0.5)
    ticket = admitted.ticket()

    async def run() -> None:
        await admitted.run(time.sleep, 0.1, ticket=ticket)

    portal.call(run)
    for _ in range(2):
        time.sleep(0.3)
        portal.call(admitted.step, ticket, time.sleep, 0.05)
    assert 0.2 <= ticket.spent < 0.5
    portal.call(admitted.step, ticket, time.sleep, 0.4)
    with pytest.raises(Deadline):
        portal.call(admitted.step, ticket, lambda: "no time is left")


def test_ticket_whose_client_left_has_no_more_turns(portal: BlockingPortal) -> None:
    admitted = Admission(slots=1, queue=0, seconds=PATIENCE)
    ticket = admitted.ticket()
    ticket.leave()
    with pytest.raises(ClientDisconnect):
        portal.call(admitted.step, ticket, lambda: "nobody waits for it")


def test_how_long_it_drains_counts_from_the_first_word_of_it() -> None:
    admitted = Admission(slots=1, queue=0, seconds=PATIENCE)
    assert not admitted.draining
    assert admitted.drained_for < 0
    admitted.drain()
    time.sleep(2 * STEP)
    admitted.drain()
    assert admitted.draining
    assert admitted.drained_for >= 2 * STEP
