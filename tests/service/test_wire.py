"""Over a real socket: what only a server shows."""

import http.client
import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI, Request

from compute import initial
from compute.tensors import Tensor
from compute.types import Array
from service import admission, bodies, state

STEP = 0.005
PATIENCE = 10
JSON = {"Content-Type": "application/json"}

MakeApp = Callable[..., FastAPI]


class Slow:
    """A call whose work goes on until it is told to finish, or stopped."""

    def __init__(self, app: FastAPI) -> None:
        self.begun, self.finish, self.ended = (threading.Event() for _ in range(3))
        app.add_api_route("/slow", self._call, methods=["POST"])

    async def _call(self, request: Request) -> str:
        here = state.of(request)
        async with bodies.read(request, here.settings, here.held):
            return await here.admission.run(self._work, receive=request.receive)

    def _work(self) -> str:
        self.begun.set()
        try:
            while not self.finish.wait(STEP):
                admission.check()
            return "done"
        finally:
            self.ended.set()


@contextmanager
def served(app: FastAPI) -> Iterator[int]:
    """The port of a server that runs the application in a thread."""
    config = uvicorn.Config(app, port=0, ws="none", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
    assert not thread.is_alive()


def connect(port: int) -> closing[http.client.HTTPConnection]:
    return closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE))


def answer(connection: http.client.HTTPConnection) -> http.client.HTTPResponse:
    response = connection.getresponse()
    response.read()
    return response


def test_health_answers_while_every_slot_is_taken_and_the_queue_is_full(
    make_app: MakeApp,
) -> None:
    app = make_app(slots=1, queue=0)
    slow = Slow(app)
    with served(app) as port, connect(port) as working, connect(port) as other:
        working.request("POST", "/slow", b"{}", JSON)
        assert slow.begun.wait(PATIENCE)
        other.request("GET", "/healthz")
        assert answer(other).status == 200
        other.request("POST", "/slow", b"{}", JSON)
        refused = answer(other)
        slow.finish.set()
        assert answer(working).status == 200
    assert refused.status == 503
    assert int(refused.headers["retry-after"]) >= 1


def test_client_that_goes_away_stops_its_work(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app()
    slow = Slow(app)
    with caplog.at_level(logging.INFO), served(app) as port, connect(port) as connection:
        connection.request("POST", "/slow", b"{}", JSON)
        assert slow.begun.wait(PATIENCE)
        connection.close()
        assert slow.ended.wait(PATIENCE)
        wait_for_line(caplog, "POST /slow 499")
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


def test_client_that_goes_away_while_sending_is_one_quiet_line(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO), served(make_app()) as port:
        with socket.create_connection(("127.0.0.1", port)) as raw:
            raw.sendall(head("POST /v1/trace", "Content-Length: 1000") + b"{")
            time.sleep(0.1)
        wait_for_line(caplog, "POST /v1/trace 499")
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


def wait_for_line(caplog: pytest.LogCaptureFixture, start: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not any(line.startswith(start) for line in caplog.messages):
        assert time.monotonic() < deadline, caplog.messages
        time.sleep(STEP)


def head(line: str, *headers: str) -> bytes:
    lines = [f"{line} HTTP/1.1", "Host: x", "Content-Type: application/json", *headers, "", ""]
    return "\r\n".join(lines).encode()


def test_body_that_takes_too_long_is_a_408_and_closes_the_connection(make_app: MakeApp) -> None:
    app = make_app(body_seconds=0.1)
    with served(app) as port, socket.create_connection(("127.0.0.1", port)) as raw:
        raw.settimeout(PATIENCE)
        raw.sendall(head("POST /v1/trace", "Content-Length: 1000") + b"{")
        received = b"".join(iter(lambda: raw.recv(65536), b""))
    assert received.startswith(b"HTTP/1.1 408 ")
    assert b"/problems/slow-body" in received


@pytest.mark.parametrize("body", [b"x" * 300_000, iter([b"x" * 100_000] * 3)])
def test_connection_lives_on_after_a_body_that_was_too_large(
    make_app: MakeApp, body: object
) -> None:
    with served(make_app(body_bytes=1000)) as port, connect(port) as connection:
        connection.request("POST", "/v1/trace", body, JSON)  # type: ignore[arg-type]
        assert answer(connection).status == 413
        first = connection.sock
        connection.request("GET", "/healthz")
        assert answer(connection).status == 200
        assert connection.sock is first


def test_trace_past_its_deadline_is_a_504_and_the_slot_is_free_again(make_app: MakeApp) -> None:
    request = (
        b'{"model": {"config": {"d_model": 256, "n_layers": 16, "attention": {"n_heads": 4}},'
        b' "weights": {"init": "zeros"}}, "select": ["blocks.15.resid_post"],'
        b' "input": {"tensor": ['
        + b",".join([b"[" + b",".join([b"1"] * 256) + b"]"] * 128)
        + b"]}}"
    )
    with served(make_app(deadline_seconds=0.001)) as port, connect(port) as connection:
        for _ in range(2):
            connection.request("POST", "/v1/trace", request, JSON)
            assert answer(connection).status == 504


def test_deadline_stops_weights_that_are_made_while_a_stage_is_computed(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = initial.seeded

    def slowly(*given: Any, check: Callable[[], None]) -> initial.Source:  # noqa: ANN401
        source = real(*given, check=check)

        def asking(tensor: Tensor) -> Array:
            until = time.monotonic() + 20
            while time.monotonic() < until:
                check()
                time.sleep(0.005)
            return source(tensor)

        return asking

    monkeypatch.setattr(initial, "seeded", slowly)
    request = (
        b'{"model": {"config": {"d_model": 2, "attention": {"n_heads": 1}}},'
        b' "input": {"tensor": [[1, 2]]}, "select": ["resid_post"]}'
    )
    with served(make_app(deadline_seconds=0.05)) as port, connect(port) as connection:
        start = time.monotonic()
        connection.request("POST", "/v1/trace", request, JSON)
        assert answer(connection).status == 504
        assert time.monotonic() - start < 5


def test_client_of_an_older_http_is_not_offered_a_stream(make_app: MakeApp) -> None:
    body = (
        b'{"model": {"config": {"d_model": 2, "attention": {"n_heads": 1}}},'
        b' "input": {"tensor": [[1, 2]]}, "select": ["resid_post"]}'
    )
    head = "POST /v1/trace HTTP/1.0\r\nContent-Type: application/json\r\n"
    head += f"Accept: application/jsonl\r\nContent-Length: {len(body)}\r\n\r\n"
    with (
        served(make_app()) as port,
        socket.create_connection(("127.0.0.1", port), PATIENCE) as raw,
    ):
        raw.sendall(head.encode() + body)
        told = b"".join(iter(lambda: raw.recv(1 << 16), b""))
    assert b" 406 " in told.split(b"\r\n")[0]
    assert b"application/json or application/vnd.safetensors." in told
    assert b"chunked" not in told


def test_answers_name_no_server_software_versions(make_app: MakeApp) -> None:
    with served(make_app()) as port, connect(port) as connection:
        connection.request("GET", "/healthz")
        assert not re.search(r"\d", answer(connection).headers.get("server", ""))
