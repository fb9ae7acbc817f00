"""What is no body of a request, on a real connection: bounded in length and in time."""

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

import running
from running import Service

BODY = json.dumps({"model": {"name": "eiffel-toy"}, "input": {"text": "the"}, "select": ["X"]})
HEAD = "POST /v1/trace HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
POST = f"{HEAD}Content-Length: {len(BODY)}\r\n\r\n{BODY}".encode()
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode()
HEAD_SECONDS = 1.0
PATIENCE = 20


@pytest.fixture(scope="module")
def server() -> Iterator[Service]:
    with running.service(head_seconds=str(HEAD_SECONDS)) as started:
        yield started


@pytest.fixture
def connection(server: Service) -> Iterator[socket.socket]:
    with closing(socket.create_connection(("127.0.0.1", server.port), PATIENCE)) as opened:
        yield opened


def everything(connection: socket.socket) -> bytes:
    """What comes until the service closes; a reset ends it too."""
    found = b""
    try:
        while piece := connection.recv(65536):
            found += piece
    except ConnectionResetError:
        pass
    return found


def answer(connection: socket.socket) -> bytes:
    """One answer, whole."""
    found = b""
    while True:
        head, end, body = found.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        if end and length and len(body) >= int(length[1]):
            return found
        piece = connection.recv(65536)
        assert piece, found
        found += piece


def statuses(found: bytes) -> list[bytes]:
    return re.findall(rb"HTTP/1\.1 (\d+)", found)


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"BREW / HTTP/1.1\r\n\r\n", b"400", b"/problems/malformed-http"),
        (b"GET /" + b"a" * 400_000, b"431", b"/problems/head-too-large"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 400_000, b"431", b"/problems/head-too-large"),
        (b"\r\n" * 200_000, b"431", b"/problems/head-too-large"),
    ],
)
def test_what_is_no_request_is_refused_and_closed(
    connection: socket.socket, sent: bytes, status: bytes, code: bytes
) -> None:
    with suppress(OSError):
        connection.sendall(sent)
    found = everything(connection)
    assert statuses(found) in ([status], [])  # a reset may overtake it
    assert not found or code in found


def test_head_that_fits_is_read(connection: socket.socket) -> None:
    connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Long: " + b"a" * 60_000 + b"\r\n\r\n")
    assert statuses(answer(connection)) == [b"200"]


@pytest.mark.parametrize("line", [b"X-More: " + b"a" * 1000 + b"\r\n", b"a"])
def test_endless_trailers_are_cut(connection: socket.socket, line: bytes) -> None:
    size = f"{len(BODY):x}".encode()
    connection.sendall(CHUNKED + size + b"\r\n" + BODY.encode() + b"\r\n0\r\n")
    with pytest.raises(OSError, match=r"reset|pipe"):
        connection.sendall(line * (40_000_000 // len(line)))


def test_chunks_with_trailers_are_answered(connection: socket.socket) -> None:
    half = len(BODY) // 2
    for part in (
        CHUNKED,
        *(f"{len(piece):x}\r\n{piece}\r\n".encode() for piece in (BODY[:half], BODY[half:])),
        b"0\r\nX-Sum: 1\r\n\r\n",
    ):
        connection.sendall(part)
    assert statuses(answer(connection)) == [b"200"]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (b"", b""),
        (b"", b"GET / HT"),
        (GET, b"\r\n"),
        (
            HEAD.replace("application/json", "text/plain").encode() + b"Content-Length: 99\r\n\r\n",
            b"x",
        ),
    ],
    ids=["silence", "half a head", "an empty line after an answer", "a byte of a refused body"],
)
def test_nobody_waits_for_a_head_for_long(
    connection: socket.socket, first: bytes, then: bytes
) -> None:
    if first:
        connection.sendall(first)
        assert answer(connection).startswith(b"HTTP/1.1 ")
    connection.sendall(then)
    begun = time.monotonic()
    assert everything(connection) == b""
    assert time.monotonic() - begun < 5 * HEAD_SECONDS


def test_connection_serves_one_request_after_another(connection: socket.socket) -> None:
    for _ in range(3):
        connection.sendall(POST)
        assert statuses(answer(connection)) == [b"200"]
        time.sleep(0.3 * HEAD_SECONDS)


def test_requests_in_one_packet_are_answered_in_their_order(connection: socket.socket) -> None:
    connection.sendall(GET * 3 + POST + GET[:20])
    connection.sendall(GET[20:].replace(b"Host", b"Connection: close\r\nHost"))
    assert statuses(everything(connection)) == [b"200"] * 5


def test_long_body_before_the_next_head_is_no_long_head(connection: socket.socket) -> None:
    long = f"{HEAD}Content-Length: 300000\r\n\r\n{BODY:<300000}".encode()
    connection.sendall(long + GET[:20])
    assert statuses(answer(connection)) == [b"200"]


def test_flood_of_requests_in_one_packet_is_cut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.sendall(GET * 5000)
    assert len(statuses(everything(connection))) < 5000


def test_answer_that_is_due_comes_before_what_is_no_request(connection: socket.socket) -> None:
    connection.sendall(POST + b"garbage\r\n\r\n")
    found = everything(connection)
    assert statuses(found) == [b"200"]
    assert b'"blocks.0.resid_pre"' in found


@pytest.mark.parametrize("first", [POST, GET])
def test_answer_that_is_due_comes_before_a_queued_body_that_breaks_off(
    connection: socket.socket, first: bytes
) -> None:
    connection.sendall(first + CHUNKED + b"2\r\n{}\r\nno chunk\r\n")
    assert statuses(everything(connection)) == [b"200"]


def test_answer_under_way_is_whole_whatever_comes_meanwhile(connection: socket.socket) -> None:
    large = json.dumps(
        {
            "model": {"preset": "gpt2-tiny", "config": {"position": {"kind": "none"}}},
            "input": {"token_ids": [1] * 400},
            "select": ["A", "S"],
        }
    )
    connection.sendall(f"{HEAD}Content-Length: {len(large)}\r\n\r\n{large}".encode())
    found = connection.recv(4096)
    with suppress(OSError):
        connection.sendall(b"garbage\r\n\r\n" * 1000)
        time.sleep(0.1)
        connection.sendall(b"x" * 100_000)
    found += everything(connection)
    head, _, body = found.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    assert length is not None
    assert len(body) == int(length[1]) > 5_000_000


def test_client_that_leaves_stops_its_work_with_another_request_queued(tmp_path: Path) -> None:
    slow = json.dumps(
        {
            "model": {"preset": "gpt2", "config": {"n_layers": 8}},
            "input": {"token_ids": [1] * 64},
            "select": [{"name": "logits", "position": [-1], "summary": True}],
            "identities": False,
        }
    )
    log = tmp_path / "log"
    with log.open("wb") as written, running.service(written, log_level="info") as started:
        with closing(socket.create_connection(("127.0.0.1", started.port), PATIENCE)) as leaving:
            leaving.sendall(f"{HEAD}Content-Length: {len(slow)}\r\n\r\n{slow}".encode() + GET)
            time.sleep(0.3)
        until = time.monotonic() + PATIENCE
        while "POST /v1/trace" not in log.read_text() and time.monotonic() < until:
            time.sleep(0.05)
    assert "POST /v1/trace 499" in log.read_text()


def test_rest_of_a_refused_body_gets_no_second_answer(connection: socket.socket) -> None:
    refused = CHUNKED.replace(b"application/json", b"text/plain")
    connection.sendall(refused)
    assert statuses(answer(connection)) == [b"415"]
    connection.sendall(b"no chunk\r\n")
    assert everything(connection) == b""


def test_body_that_breaks_off_is_refused_at_once(connection: socket.socket) -> None:
    connection.sendall(CHUNKED + b"2\r\n{}\r\nno chunk\r\n")
    found = everything(connection)
    assert statuses(found) == [b"400"]
    assert b"/problems/malformed-http" in found


@pytest.mark.parametrize("name", ["Upgrade", "upgrade"])
def test_offer_of_another_protocol_does_not_cost_the_body(
    connection: socket.socket, name: str
) -> None:
    offer = f"Connection: Upgrade, HTTP2-Settings\r\n{name}: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    head = POST.split(b"Content-Type")[0] + offer.encode()
    connection.sendall(head + b"Content-Type" + POST.split(b"Content-Type")[1])
    assert statuses(answer(connection)) == [b"200"]
