"""A quiet service gives memory back, once after something large."""

import anyio
import pytest

from service import idle
from service.admission import Admission
from service.held import Held

SIZE = idle.LARGE + 1


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


def admission() -> Admission:
    return Admission(slots=1, queue=1, seconds=1)


def test_memory_is_given_back_once_after_something_large(trims: list[int]) -> None:
    held = Held(10 * SIZE)
    with held.count(SIZE):
        pass
    watched(held, admission())
    assert trims == [0]


def test_nothing_is_given_back_after_small_requests(trims: list[int]) -> None:
    held = Held(10 * SIZE)
    for _ in range(100):
        with held.count(1000):
            pass
    watched(held, admission())
    assert trims == []


def test_nothing_is_given_back_while_something_is_held_or_computes(trims: list[int]) -> None:
    held, busy = Held(10 * SIZE), admission()
    with held.count(SIZE):
        watched(held, busy)
    busy.inside = 1
    watched(held, busy)
    assert trims == []


def test_without_such_a_c_library_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle, "_trim", lambda: None)
    anyio.run(idle.give_back, admission(), Held(1))
