"""Bodies and answers are counted together, bounded, and given back in every case."""

import asyncio
import http.client
import json
import logging
import socket
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from starlette.types import Message

import serving
from service.admission import Admission
from service.errors import Busy
from service.held import Held
from service.pieces import CHUNK_BYTES, Pieces
from serving import until

STEP = 0.005
PATIENCE = 10
JSON = {"Content-Type": "application/json"}
SMALL = json.dumps(
    {
        "model": {"config": {"d_model": 2, "attention": {"n_heads": 1}}},
        "input": {"tensor": [[1, 2]]},
        "select": ["resid_post"],
    }
).encode()
LARGE = json.dumps(
    {
        "model": {"config": {"d_model": 64, "n_layers": 2, "attention": {"n_heads": 4}}},
        "input": {"tensor": [[0.125 * (i % 7) for i in range(64)] for _ in range(384)]},
    }
).encode()
"""Asks for more than the buffers of a socket take."""

MakeApp = Callable[..., FastAPI]


def served(app: FastAPI) -> AbstractContextManager[int]:
    """The port of a server that runs the application in a thread; afterwards nothing is held."""
    return serving.served(app, lambda: held(app) == 0)


def held(app: FastAPI) -> int:
    total: int = app.state.glassblock.held.total
    return total


def head(*headers: str) -> bytes:
    """The head of a trace request, its body still to come."""
    lines = ["POST /v1/trace HTTP/1.1", "Host: x", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def opened(port: int, *sent: bytes) -> socket.socket:
    """A connection that has sent something and takes little at once."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    raw.settimeout(PATIENCE)
    raw.connect(("127.0.0.1", port))
    raw.sendall(b"".join(sent))
    return raw


def asking(port: int, body: bytes, *headers: str) -> socket.socket:
    return opened(port, head(f"Content-Length: {len(body)}", *headers), body)


def everything(raw: socket.socket) -> bytes:
    """What comes until the connection is closed."""
    received = bytearray()
    with suppress(ConnectionResetError):
        while part := raw.recv(1 << 20):
            received += part
    return bytes(received)


def status_of(port: int, body: bytes) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        connection.request("POST", "/v1/trace", body, JSON)
        response = connection.getresponse()
        response.read()
        return response.status


def test_what_does_not_fit_is_refused_with_a_time_to_come_back() -> None:
    counted = Held(10)
    with counted.count(8):
        counted.refuse_if_full(2)
        with pytest.raises(Busy) as refused:
            counted.refuse_if_full(3)
    assert int(refused.value.refusal.headers["Retry-After"]) >= 1
    assert counted.total == 0


def test_share_that_changes_and_ends_in_an_error_is_given_back_whole() -> None:
    counted = Held(10)

    def fail() -> None:
        with counted.count(8) as share:
            share.resize(3)
            assert counted.total == 3
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert counted.total == 0


def test_body_that_does_not_fit_beside_others_is_refused_before_it_is_sent(
    make_app: MakeApp,
) -> None:
    app = make_app(body_bytes=1000, binary_body_bytes=1000, held_bytes=1000)
    with served(app) as port, opened(port, head("Content-Length: 900"), b"{"):
        until(lambda: held(app) == 900)
        with opened(port, head("Content-Length: 101", "Connection: close")) as other:
            refused = everything(other)
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"/problems/busy" in refused
        assert b"\r\nretry-after: " in refused.lower()
        assert held(app) == 900


def test_small_body_fits_beside_one_that_never_comes(make_app: MakeApp) -> None:
    app = make_app(body_bytes=1000, binary_body_bytes=1000, held_bytes=1000)
    with served(app) as port, opened(port, head(f"Content-Length: {1000 - len(SMALL)}")):
        until(lambda: held(app) > 0)
        assert status_of(port, SMALL) == 200


def test_body_of_untold_length_counts_as_the_longest(make_app: MakeApp) -> None:
    app = make_app(body_bytes=1000, binary_body_bytes=1000, held_bytes=1500)
    with served(app) as port, opened(port, head("Transfer-Encoding: chunked")):
        until(lambda: held(app) == 1000)


def test_client_that_goes_away_while_sending_gives_back_its_share(make_app: MakeApp) -> None:
    app = make_app(body_bytes=1000, binary_body_bytes=1000, held_bytes=1000)
    with served(app) as port:
        with opened(port, head("Content-Length: 900"), b"{"):
            until(lambda: held(app) == 900)
        until(lambda: held(app) == 0)
        assert status_of(port, SMALL) == 200


@pytest.mark.parametrize("headers", ["Content-Length: 9", "Transfer-Encoding: chunked"])
def test_body_that_takes_too_long_gives_back_its_share(make_app: MakeApp, headers: str) -> None:
    with served(make_app(body_seconds=0.05)) as port, opened(port, head(headers)) as raw:
        assert everything(raw).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(("body", "code"), [(b"{", 400), (b"{}", 422), (SMALL, 200)])
def test_nothing_is_held_after_an_answer(
    make_client: Callable[..., TestClient], body: bytes, code: int
) -> None:
    client = make_client()
    for content in (body, iter([body])):
        assert client.post("/v1/trace", content=content, headers=JSON).status_code == code
        assert held(client.app) == 0  # type: ignore[arg-type]


def test_room_of_200_students_is_not_refused_for_what_is_held(make_app: MakeApp) -> None:
    app = make_app(queue=200)
    with served(app) as port:
        room = [asking(port, SMALL) for _ in range(200)]
        answers = [raw.recv(12) for raw in room]
        for raw in room:
            raw.close()
    assert answers == [b"HTTP/1.1 200"] * 200


def test_answer_counts_until_it_is_taken_and_keeps_new_requests_outside(
    make_app: MakeApp,
) -> None:
    app = make_app(body_bytes=1 << 20, binary_body_bytes=1 << 20, held_bytes=1 << 20)
    with served(app) as port:
        with asking(port, LARGE) as lazy:
            assert lazy.recv(12) == b"HTTP/1.1 200"
            until(lambda: held(app) > 1 << 20)
            assert status_of(port, SMALL) == 503
        until(lambda: held(app) == 0)
        assert status_of(port, SMALL) == 200


def test_work_does_not_begin_where_too_much_is_held_at_its_turn() -> None:
    counted = Held(10)
    admitted = Admission(slots=1, queue=0, seconds=PATIENCE, held=counted)

    async def run() -> str:
        with counted.count(11):
            return await admitted.run(lambda: "begun")

    with pytest.raises(Busy):
        asyncio.run(run())
    assert (admitted.inside, counted.total) == (0, 0)


def test_reader_that_does_not_read_is_cut_with_one_quiet_line(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(send_seconds=0.1)
    with caplog.at_level(logging.INFO), served(app) as port, asking(port, LARGE) as lazy:
        until(lambda: any("was cut" in line for line in caplog.messages))
        until(lambda: held(app) == 0)
        received = everything(lazy)
    assert received.startswith(b"HTTP/1.1 200 ")
    assert len(received) < length_told(received)
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


def length_told(received: bytes) -> int:
    return int(received.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])


def test_reader_that_takes_its_time_gets_every_byte(
    make_app: MakeApp, make_client: Callable[..., TestClient]
) -> None:
    app = make_app()
    with served(app) as port, asking(port, LARGE, "Connection: close") as slow:
        until(lambda: held(app) > 1 << 20)
        time.sleep(0.2)
        received = everything(slow)
    expected = make_client().post("/v1/trace", content=LARGE, headers=JSON)
    assert received.partition(b"\r\n\r\n")[2] == expected.content
    assert length_told(received) == len(expected.content)


def sent_by(response: Pieces) -> list[Message]:
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    async def receive() -> Message:
        raise AssertionError("nothing is asked of the client")

    asyncio.run(response({"type": "http"}, receive, send))
    return messages


def test_answer_goes_out_in_chunks_that_make_up_its_pieces() -> None:
    pieces = [b"[", b"1" * (2 * CHUNK_BYTES + 1), b"", b"2" * CHUNK_BYTES, b"]"]
    start, *body = sent_by(
        Pieces(pieces, {}, media="application/json", held=Held(0), send_seconds=PATIENCE)
    )
    assert dict(start["headers"])[b"content-length"] == str(3 * CHUNK_BYTES + 3).encode()
    assert b"".join(message["body"] for message in body) == b"".join(pieces)
    assert max(len(message["body"]) for message in body) == CHUNK_BYTES


@pytest.mark.parametrize("failure", [asyncio.CancelledError, RuntimeError])
def test_answer_that_is_given_up_while_it_is_sent_is_not_held(
    failure: type[BaseException],
) -> None:
    counted = Held(0)

    async def send(message: Message) -> None:
        assert counted.total == 2
        raise failure

    async def run() -> None:
        response = Pieces(
            [b"{}"], {}, media="application/json", held=counted, send_seconds=PATIENCE
        )
        with pytest.raises(failure):
            await response({"type": "http"}, send, send)  # type: ignore[arg-type]

    asyncio.run(run())
    assert counted.total == 0
