"""Requests that are done sooner than they are handed over run on the event loop, and only those."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from service import calls, quick
from service.admission import Admission
from service.bodies import Sent
from service.quick import MOST_SECONDS, Patience, Quick, Slower

REQUEST: dict[str, Any] = {
    "model": {"config": {"d_model": 4, "attention": {"n_heads": 2}}},
    "input": {"tensor": [[1, 2, 3, 4]]},
    "select": ["resid_post"],
}


def outline_of(body: bytes, call: str = "TraceRequest") -> object:
    return Quick().outline(Sent(body), call)


def test_outline_is_all_but_the_numbers_of_the_input() -> None:
    one = b'{"n_layers": 2, "tensor": [[1.5, -2e3], [0, 1]], "seed": 7}'
    assert outline_of(one) == outline_of(one.replace(b"1.5, -2e3", b"+9.25,4"))
    assert outline_of(one) != outline_of(one.replace(b'"n_layers": 2', b'"n_layers": 9'))
    assert outline_of(one) != outline_of(one.replace(b"7", b"8"))
    assert outline_of(one) != outline_of(one.replace(b"1.5, ", b"1.5, 3, "))
    assert outline_of(one) != outline_of(one.replace(b"], [", b", "))
    assert outline_of(one, "TraceRequest") != outline_of(one, "SweepRequest")
    lines = Sent(one, accepted="application/jsonl")
    assert Quick().outline(lines, "TraceRequest") != outline_of(one)


@pytest.mark.parametrize(
    "sent",
    [
        Sent(b" " * (1 << 16)),
        Sent(b'{"format": {"digits": 3}}'),
        Sent(b"{}", media="application/vnd.safetensors"),
    ],
)
def test_what_may_not_be_quick_has_no_outline_and_is_never_known(sent: Sent) -> None:
    known = Quick()
    outline = known.outline(sent, "TraceRequest")
    known.note(outline, 0.0)
    assert outline is None
    assert not known.knows(outline)


def test_outline_is_known_while_its_last_request_was_quick() -> None:
    known = Quick()
    known.note(b"a", MOST_SECONDS)
    assert known.knows(b"a")
    known.note(b"a", 2 * MOST_SECONDS)
    assert not known.knows(b"a")


def test_as_many_outlines_as_fit_are_known() -> None:
    known = Quick()
    outlines = [b"%d" % number for number in range(5000)]
    for outline in outlines:
        known.note(outline, 0.0)
    assert known.knows(outlines[-1])
    assert not known.knows(outlines[0])
    assert sum(map(known.knows, outlines)) == 1024


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(quick.time, "perf_counter", lambda: now)
    check = Patience()
    check()
    now = 1.0
    with pytest.raises(Slower):
        check()


def test_second_request_of_an_outline_runs_where_it_is_and_answers_the_same(
    make_app: Callable[..., FastAPI], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "MOST_SECONDS", 60.0)
    threads: list[str] = []
    answered = calls.answer

    def noting(*given: Any) -> Any:  # noqa: ANN401
        threads.append(threading.current_thread().name)
        return answered(*given)

    monkeypatch.setattr(calls, "answer", noting)
    with TestClient(make_app()) as client:
        bodies = [client.post("/v1/trace", json=REQUEST).content for _ in range(3)]
    assert len(set(bodies)) == 1
    first, *rest = threads
    assert "AnyIO worker thread" in first
    assert not any("AnyIO worker thread" in name for name in rest)


def test_request_that_took_long_where_it_ran_is_handed_over_the_next_time(
    make_app: Callable[..., FastAPI], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app()
    with TestClient(app) as client:
        for most, runs in ((60.0, 1), (-1.0, 2), (-1.0, 3)):
            monkeypatch.setattr(quick, "MOST_SECONDS", most)
            client.post("/v1/trace", json=REQUEST)
            assert app.state.glassblock.admission.runs == runs
        known = app.state.glassblock.quick._known
        assert not known


def test_request_that_is_slower_than_its_outline_goes_to_a_thread_after_all(
    make_app: Callable[..., FastAPI], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "MOST_SECONDS", 60.0)
    with TestClient(make_app()) as client:
        quickly = client.post("/v1/trace", json=REQUEST).content

        def impatient(self: Patience) -> None:
            raise Slower

        monkeypatch.setattr(Patience, "__call__", impatient)
        assert client.post("/v1/trace", json=REQUEST).content == quickly


def test_refusal_is_a_problem_where_a_request_runs_at_once(
    make_app: Callable[..., FastAPI],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quick, "MOST_SECONDS", 60.0)
    with TestClient(make_app()) as client:
        client.post("/v1/trace", json=REQUEST)
        monkeypatch.setattr(Admission, "run", None)  # so that nothing can be handed over
        huge = {"input": {"tensor": [[1, 2, 3, 10**400]]}}
        answer = client.post("/v1/trace", json={**REQUEST, **huge})
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/invalid-request")
