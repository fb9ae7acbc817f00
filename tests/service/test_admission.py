"""Work takes turns, waits in a bounded queue, and really stops."""

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio
import numpy as np
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from starlette.requests import ClientDisconnect
from starlette.types import Message

from service import admission
from service.admission import Admission
from service.errors import Busy, Deadline, Draining
from serving import until

STEP = 0.005
PATIENCE = 10


class Work:
    """Work in steps that goes on until it is told to finish, or stopped."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.finish = threading.Event()
        self.ended = threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        try:
            while not self.finish.wait(STEP):
                admission.check()
            return "done"
        finally:
            self.ended.set()


@contextmanager
def occupied(portal: BlockingPortal, admitted: Admission) -> Iterator[Work]:
    """One slot is taken by work that ends with the block."""
    work = Work()
    future = portal.start_task_soon(admitted.run, work)
    assert work.begun.wait(PATIENCE)
    try:
        yield work
    finally:
        work.finish.set()
        future.result(PATIENCE)


@pytest.fixture
def portal() -> Iterator[BlockingPortal]:
    """An event loop in another thread."""
    with start_blocking_portal() as opened:
        yield opened


def test_result_and_errors_of_the_work_come_back(portal: BlockingPortal) -> None:
    admitted = Admission(slots=1, queue=0, seconds=PATIENCE)
    assert portal.call(admitted.run, divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        portal.call(admitted.run, divmod, 7, 0)


def test_work_runs_in_a_thread_of_its_own(portal: BlockingPortal) -> None:
    admitted = Admission(slots=1, queue=0, seconds=PATIENCE)
    loop = portal.call(threading.get_ident)
    assert portal.call(admitted.run, threading.get_ident) != loop


def test_check_outside_of_a_run_does_nothing() -> None:
    admission.check()


def test_work_past_its_deadline_ends_and_frees_its_slot(portal: BlockingPortal) -> None:
    admitted = Admission(slots=1, queue=0, seconds=0.05)
    work = Work()
    with pytest.raises(Deadline):
        portal.call(admitted.run, work)
    assert work.ended.is_set()
    assert portal.call(admitted.run, lambda: "next") == "next"


def test_request_beyond_the_queue_is_refused_at_once(portal: BlockingPortal) -> None:
    admitted = Admission(slots=1, queue=1, seconds=PATIENCE)
    with occupied(portal, admitted) as work:
        waiting = portal.start_task_soon(admitted.run, lambda: "waited")
        until(lambda: admitted.inside == 2)
        with pytest.raises(Busy) as refused:
            portal.call(admitted.run, lambda: "refused")
        work.finish.set()
        assert waiting.result(PATIENCE) == "waited"
    assert int(refused.value.refusal.headers["Retry-After"]) >= 1
    assert admitted.inside == 0


def test_slots_run_side_by_side_and_no_more(portal: BlockingPortal) -> None:
    admitted = Admission(slots=2, queue=1, seconds=PATIENCE)
    with occupied(portal, admitted), occupied(portal, admitted):
        third = Work()
        future = portal.start_task_soon(admitted.run, third)
        until(lambda: admitted.inside == 3)
        assert not third.begun.wait(10 * STEP)
    third.finish.set()
    assert future.result(PATIENCE) == "done"


def test_request_that_gets_no_turn_in_time_is_refused_as_busy(portal: BlockingPortal) -> None:
    admitted = Admission(slots=1, queue=1, seconds=0.1)
    work = threading.Event()
    first = portal.start_task_soon(admitted.run, work.wait, PATIENCE)  # never asks to stop
    until(lambda: admitted.inside == 1)
    with pytest.raises(Busy):
        portal.call(admitted.run, lambda: "too late")
    assert admitted.inside == 1
    work.set()
    assert first.result(PATIENCE)


def test_deadline_counts_from_the_turn_and_not_from_the_queue(portal: BlockingPortal) -> None:
    admitted = Admission(slots=1, queue=1, seconds=0.5)

    def half() -> str:
        for _ in range(60):
            time.sleep(STEP)
            admission.check()
        return "done"

    both = [portal.start_task_soon(admitted.run, half) for _ in range(2)]
    assert [future.result(PATIENCE) for future in both] == ["done", "done"]


def test_work_ends_when_its_client_goes_away(portal: BlockingPortal) -> None:
    admitted = Admission(slots=1, queue=0, seconds=PATIENCE)
    work = Work()
    with pytest.raises(ClientDisconnect):
        portal.call(leaving_when(work.begun.is_set, admitted, work))
    assert work.ended.is_set()
    assert admitted.inside == 0


def test_place_in_the_queue_is_freed_when_its_client_goes_away(portal: BlockingPortal) -> None:
    admitted = Admission(slots=1, queue=1, seconds=PATIENCE)
    work = Work()
    with occupied(portal, admitted):
        with pytest.raises(ClientDisconnect):
            portal.call(leaving_when(lambda: admitted.inside == 2, admitted, work))
        assert admitted.inside == 1
    assert not work.begun.is_set()


def leaving_when(
    condition: Callable[[], bool], admitted: Admission, work: Work
) -> Callable[[], object]:
    """A run whose client leaves when a condition holds."""

    async def receive() -> Message:
        while not condition():
            await anyio.sleep(STEP)
        return {"type": "http.disconnect"}

    async def run() -> str:
        return await admitted.run(work, receive=receive)

    return run


def test_work_ends_when_the_server_gives_the_request_up(portal: BlockingPortal) -> None:
    admitted = Admission(slots=1, queue=0, seconds=PATIENCE)
    work = Work()

    async def give_up() -> None:
        task = asyncio.create_task(admitted.run(work))
        while not work.begun.is_set():
            await anyio.sleep(STEP)
        task.cancel()

    portal.call(give_up)
    assert work.ended.wait(PATIENCE)


def test_draining_takes_nothing_new_and_finishes_what_is_inside(portal: BlockingPortal) -> None:
    admitted = Admission(slots=1, queue=1, seconds=PATIENCE)
    with occupied(portal, admitted):
        portal.call(admitted.drain)
        with pytest.raises(Draining):
            portal.call(admitted.run, lambda: "new")


def test_retry_after_follows_how_long_work_takes_and_who_is_there(portal: BlockingPortal) -> None:
    admitted = Admission(slots=1, queue=2, seconds=PATIENCE)
    assert admitted.retry_after == 1
    admitted.note(seconds=20)
    with occupied(portal, admitted):
        assert admitted.retry_after == 4


@pytest.mark.parametrize("how", ["deadline", "gone"])
def test_stopped_work_keeps_nothing(how: str) -> None:
    """An array of stopped work is freed at once, without the garbage collector."""
    left: list[weakref.ref[np.ndarray]] = []

    def work() -> None:
        array = np.zeros(1000)
        left.append(weakref.ref(array))
        while True:
            time.sleep(STEP)
            admission.check()

    async def stopped() -> None:
        here = Admission(slots=1, queue=1, seconds=0.05 if how == "deadline" else PATIENCE)
        if how == "deadline":
            with pytest.raises(Deadline):
                await here.run(work)
        else:
            with pytest.raises(ClientDisconnect):
                await here.run(work, receive=gone)

    async def gone() -> Message:
        await anyio.sleep(10 * STEP)
        return {"type": "http.disconnect"}

    gc.disable()
    try:
        anyio.run(stopped)
        assert left[0]() is None
    finally:
        gc.enable()
