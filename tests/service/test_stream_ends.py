"""How a stream ends before its end: its reader, a failure, a limit, a service that stops."""

import json
import logging
import socket
import threading
import time
from collections.abc import Callable

import pytest
from fastapi import FastAPI

from service import pieces, streams
from serving import until
from streamed import LARGE, PATIENCE, SMALL, STEP, Gate, asking, held, inside, served, stream

MakeApp = Callable[..., FastAPI]


def test_reader_that_goes_away_ends_the_work_within_a_second(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate(monkeypatch, "blocks.1.resid_pre")
    app = make_app()
    with caplog.at_level(logging.INFO), served(app) as port:
        with stream(port, SMALL) as lines:
            assert lines.next() is not None
            assert gate.reached.wait(PATIENCE)
            assert held(app) > 0
        until(lambda: gate.left.is_set() and inside(app) == 0 and held(app) == 0, seconds=1)
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


def test_reader_that_goes_away_while_it_is_waited_for_ends_the_work_within_a_second(
    make_app: MakeApp,
) -> None:
    app = make_app()
    with served(app) as port:
        with asking(port, LARGE) as lazy:
            assert lazy.recv(12) == b"HTTP/1.1 200"
            until(lambda: held(app) > 0 and inside(app) == 0)
            time.sleep(20 * STEP)
            assert held(app) > 0
        until(lambda: held(app) == 0, seconds=1)


def test_reader_that_does_not_read_is_cut_and_others_are_served_meanwhile(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(send_seconds=0.5)
    with caplog.at_level(logging.INFO), served(app) as port, asking(port, LARGE) as lazy:
        assert lazy.recv(12) == b"HTTP/1.1 200"
        with stream(port, SMALL) as other:
            assert other.rest()[-1]["end"] is True
        assert held(app) > 0
        until(lambda: any("was cut" in line for line in caplog.messages))
        until(lambda: held(app) == 0, seconds=1)
        received = everything(lazy)
    assert b'"end":true' not in received
    assert not received.endswith(b"0\r\n\r\n")


def everything(raw: socket.socket) -> bytes:
    received = b""
    try:
        while more := raw.recv(65536):
            received += more
    except ConnectionResetError:
        pass
    return received


def test_reader_that_crawls_is_cut(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Every chunk is taken in time, but all of them together too slowly."""
    monkeypatch.setattr(pieces, "SLOWEST", 1 << 22)
    monkeypatch.setattr(pieces, "CHUNK_BYTES", 1 << 14)
    app = make_app(send_seconds=0.5)
    with caplog.at_level(logging.INFO), served(app) as port, asking(port, LARGE) as slow:
        start = time.monotonic()
        while not any("was cut" in line for line in caplog.messages):
            assert time.monotonic() - start < PATIENCE
            slow.recv(1 << 12)
            time.sleep(STEP)
        until(lambda: held(app) == 0, seconds=1)
    assert time.monotonic() - start > 0.5


@pytest.mark.parametrize(
    ("failure", "code"),
    [(ZeroDivisionError("secret"), "internal"), (MemoryError(), "out-of-memory")],
)
def test_stage_that_fails_ends_in_an_error_line(
    make_app: MakeApp,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
    code: str,
) -> None:
    Gate(monkeypatch, "blocks.1.attn.z", failure)
    with served(make_app()) as port:
        for _ in range(2):  # the slot is free again
            with stream(port, SMALL) as lines:
                *told, last = lines.rest()
                assert told[-1]["stage"] == "blocks.1.attn.pattern"
                assert last.keys() == {"error"}
                assert last["error"]["type"] == f"/problems/{code}"
                assert "secret" not in json.dumps(last)
    logged = [record.levelno for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(logged) == (2 if code == "internal" else 0)


def test_deadline_counts_what_is_computed_and_ends_in_an_error_line(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    Gate(monkeypatch, "blocks.1.attn.z")
    with served(make_app(deadline_seconds=0.3)) as port, stream(port, SMALL) as lines:
        last = lines.rest()[-1]
    assert last["error"]["type"] == "/problems/deadline"
    assert "0.3 seconds" in last["error"]["detail"]


def test_deadline_does_not_count_a_reader_who_takes_longer(make_app: MakeApp) -> None:
    app = make_app(deadline_seconds=2)
    with served(app) as port, stream(port, LARGE) as lines:
        until(lambda: held(app) > 0 and inside(app) == 0)
        time.sleep(2.5)
        assert lines.rest()[-1]["end"] is True


def test_stream_beyond_its_time_ends_in_an_error_line(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch, "blocks.1.attn.z")
    threading.Timer(0.6, gate.opened.set).start()
    with served(make_app(stream_seconds=0.3)) as port, stream(port, SMALL) as lines:
        last = lines.rest()[-1]
    assert last["error"]["type"] == "/problems/deadline"


def test_stopping_service_ends_a_stream_in_an_error_line(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "LAST_SECONDS", 0.1)
    gate = Gate(monkeypatch, "blocks.1.resid_pre")
    app = make_app()
    with served(app) as port, stream(port, SMALL) as lines:
        assert lines.next() is not None
        assert gate.reached.wait(PATIENCE)
        app.state.glassblock.admission.drain()
        time.sleep(0.2)
        gate.opened.set()
        last = lines.rest()[-1]
    assert last["error"]["type"] == "/problems/draining"


def test_stream_that_is_nearly_done_ends_well_when_the_service_stops(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch, "blocks.1.resid_pre")
    app = make_app()
    with served(app) as port, stream(port, SMALL) as lines:
        assert gate.reached.wait(PATIENCE)
        app.state.glassblock.admission.drain()
        gate.opened.set()
        assert lines.rest()[-1]["end"] is True
