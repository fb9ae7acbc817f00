"""A quiet service gives memory back, once after it has computed."""

import anyio
import pytest

from service import idle
from service.admission import Admission
from service.held import Held


@pytest.fixture
def trims(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What malloc_trim was called with."""
    calls: list[int] = []
    monkeypatch.setattr(idle, "QUIET_SECONDS", 0.01)
    monkeypatch.setattr(idle, "_trim", lambda: lambda pad: calls.append(pad) or 1)
    return calls


def watched(held: Held, admission: Admission) -> None:
    async def for_a_while() -> None:
        with anyio.move_on_after(0.2):
            await idle.give_back(admission, held)

    anyio.run(for_a_while)


def admission(runs: int) -> Admission:
    made = Admission(slots=1, queue=1, seconds=1)
    made.runs = runs
    return made


def test_memory_is_given_back_once_after_a_run(trims: list[int]) -> None:
    watched(Held(10), admission(runs=3))
    assert trims == [0]


def test_nothing_is_given_back_where_nothing_ran(trims: list[int]) -> None:
    watched(Held(10), admission(runs=0))
    assert trims == []


def test_nothing_is_given_back_while_something_is_held_or_computes(trims: list[int]) -> None:
    held, busy = Held(10), admission(runs=3)
    with held.count(5):
        watched(held, busy)
    busy.inside = 1
    watched(held, busy)
    assert trims == []


def test_without_such_a_c_library_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle, "_trim", lambda: None)
    anyio.run(idle.give_back, admission(runs=3), Held(1))
