"""A trace as JSON Lines is sent as it is computed, gives way to others, and is refused early."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from serving import until
from streamed import AT_ONCE, LARGE, PATIENCE, SMALL, Gate, held, inside, served, stream

LINES = {"Accept": "application/jsonl"}

MakeApp = Callable[..., FastAPI]
Problem = Callable[..., dict[str, Any]]


def whole(client: TestClient, request: object, **headers: str) -> Any:  # noqa: ANN401 - as JSON
    response = client.post("/v1/trace", json=request, headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


def test_stream_tells_the_answer_in_lines(client: TestClient) -> None:
    response = client.post("/v1/trace", json=SMALL, headers=LINES)
    assert response.headers["content-type"] == "application/jsonl"
    assert "content-length" not in response.headers
    head, *stages, end = map(json.loads, response.content.splitlines())
    expected = whole(client, SMALL)
    assert head == {
        **{name: expected[name] for name in ("model", "input", "absent")},
        "stages": list(expected["tensors"]),
    }
    assert {line.pop("stage"): line for line in stages} == expected["tensors"]
    following = ("fully_masked_rows", "next_token", "identities", "cost")
    assert end == {"end": True, **{name: expected[name] for name in following}}


def test_large_stage_comes_in_pieces_of_its_rows(client: TestClient) -> None:
    asked = LARGE | {"select": ["blocks.1.attn.pattern"], "identities": False}
    response = client.post("/v1/trace", json=asked, headers=LINES)
    _, *parts, end = map(json.loads, response.content.splitlines())
    expected = whole(client, asked)["tensors"]["blocks.1.attn.pattern"]
    assert len(parts) > 2
    assert [part["rows"][1] for part in parts[:-1]] == [part["rows"][0] for part in parts[1:]]
    rows = [row for part in parts for row in part["data"]]
    assert rows == [row for head in expected["data"] for row in head]
    assert end["identities"] is None


def test_first_stage_is_read_before_the_second_block_is_computed(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch, "blocks.1.resid_pre")
    with served(make_app()) as port, stream(port, SMALL) as lines:
        assert lines.status == 200
        head = lines.next()
        assert head is not None
        told = [lines.next() for name in head["stages"] if name.startswith("blocks.0.")]
        assert gate.reached.wait(PATIENCE)
        assert not gate.left.is_set()
        assert all(line is not None and line["stage"].startswith("blocks.0.") for line in told)
        gate.opened.set()
        rest = lines.rest()
    assert len(told) + len(rest) == len(head["stages"]) + 1
    assert rest[-1]["end"] is True


def test_stream_and_small_requests_take_turns(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While each waits for its reader the other one has the only slot."""
    app = make_app(slots=1)
    with served(app) as port, stream(port, LARGE) as one, stream(port, LARGE) as other:
        first, second = [one.next()], [other.next()]
        with stream(port, AT_ONCE) as small:
            assert small.rest()[-1]["end"] is True
        while (first[-1], second[-1]) != (None, None):
            first.append(one.next() if first[-1] else None)
            second.append(other.next() if second[-1] else None)
    told = [[line for line in lines if line] for lines in (first, second)]
    assert told[0] == told[1]
    assert told[0][-1]["end"] is True


def test_streams_beyond_their_memory_are_refused_and_one_alone_is_not(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch, "blocks.1.resid_pre")
    app = make_app(stream_bytes=1, slots=2)
    with served(app) as port, stream(port, SMALL) as lines:
        assert lines.status == 200
        with stream(port, AT_ONCE) as other:
            assert other.status == 503
            assert int(other.headers[b"retry-after"]) >= 1
            assert other.headers[b"content-type"] == b"application/problem+json"
        gate.opened.set()
        assert lines.rest()[-1]["end"] is True


@pytest.mark.parametrize(
    ("change", "settings", "code"),
    [
        ({"select": ["nothing"]}, {}, "invalid-selection"),
        ({"model": {"name": "nobody"}}, {}, "unknown-model"),
        ({}, {"binary_elements": 1}, "beyond-limit"),
        ({}, {"memory_bytes": 1}, "beyond-limit"),
    ],
)
def test_what_can_be_refused_is_refused_before_the_first_line(
    make_client: Callable[..., TestClient],
    assert_problem: Problem,
    change: dict[str, Any],
    settings: dict[str, Any],
    code: str,
) -> None:
    client = make_client(**settings)
    assert_problem(client.post("/v1/trace", json=SMALL | change, headers=LINES), code)
    assert held(client.app) == 0  # type: ignore[arg-type]


def test_answer_known_whole_is_told_in_lines_made_while_it_is_sent(
    make_app: MakeApp, client: TestClient
) -> None:
    """With an intervention all is computed first; its text is never held whole."""
    changed = LARGE | {"interventions": [{"stage": "blocks.0.attn.z", "op": "zero"}]}
    app = make_app()
    with served(app) as port, stream(port, changed) as lines:
        head = lines.next()
        assert head is not None
        until(lambda: inside(app) == 0)
        assert held(app) > 0
        *parts, end = lines.rest()
    assert end == {"end": True}
    told: dict[str, list[Any]] = {}
    for part in parts:
        told.setdefault(part["entry"], []).append(part)
    assert [name for name in told if not name.startswith("/")] == list(head["tensors"])
    expected = whole(client, changed)["tensors"]["blocks.1.attn.pattern"]["data"]
    found = [row for part in told["blocks.1.attn.pattern"] for row in part["data"]]
    assert len(told["blocks.1.attn.pattern"]) > 2
    assert found == [row for one in expected for row in one]
