"""Streams over a real socket: a server, a gate to hold a stream at a stage, a reader of lines."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import IO, Any

import pytest
from fastapi import FastAPI

import serving
from compute import streaming
from compute.trace import Made

STEP = 0.005
PATIENCE = 10
BLOCKS = 3
WIDE = {"d_model": 64, "n_layers": 2, "attention": {"n_heads": 4}}
ROWS = [[0.125 * ((i * j) % 7) for i in range(64)] for j in range(192)]
LARGE = {"model": {"config": WIDE}, "input": {"tensor": ROWS}}
"""Tells more than the buffers of a socket take."""
SMALL = {
    "model": {"config": {"d_model": 2, "n_layers": BLOCKS, "attention": {"n_heads": 1}}},
    "input": {"tensor": [[1, 2]]},
}
AT_ONCE = SMALL | {"select": ["blocks.0.resid_pre"]}


class Gate:
    """Stops every stream before a stage is told, until it is opened."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, stage: str, failure: Exception | None = None
    ) -> None:
        self.reached, self.opened, self.left = (threading.Event() for _ in range(3))
        self._stage = stage
        self._failure = failure
        self._stages = streaming.Streaming.stages

        def gated(streamed: streaming.Streaming) -> Iterator[Made]:
            return self._gated(streamed)

        monkeypatch.setattr(streaming.Streaming, "stages", gated)

    def _gated(self, streamed: streaming.Streaming) -> Iterator[Made]:
        try:
            for made in self._stages(streamed):
                if made.wanted.name == self._stage:
                    self.reached.set()
                    if self._failure is not None:
                        raise self._failure
                    while not self.opened.wait(STEP):
                        streamed.trace.run.check()
                yield made
        finally:
            self.left.set()


def served(app: FastAPI) -> AbstractContextManager[int]:
    """The port of a server that runs the application in a thread; afterwards nothing is open."""
    return serving.served(app, lambda: held(app) == 0 and inside(app) == 0)


def held(app: FastAPI) -> int:
    total: int = app.state.glassblock.streams.total
    return total


def inside(app: FastAPI) -> int:
    count: int = app.state.glassblock.admission.inside
    return count


class Lines:
    """A connection that has asked for a stream, and reads its answer line by line."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.status = int(file.readline().split()[1])
        headers = iter(file.readline, b"\r\n")
        self.headers = dict(line.lower().strip().split(b": ", 1) for line in headers)
        self._text = b""

    def next(self) -> dict[str, Any] | None:
        """The next line, or None at the end of the answer."""
        while b"\n" not in self._text:
            size = int(self._file.readline(), 16)
            self._text += self._file.read(size)
            assert self._file.readline() == b"\r\n"
            if not size:
                assert self._text == b""
                return None
        line, _, self._text = self._text.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def rest(self) -> list[dict[str, Any]]:
        return list(iter(self.next, None))


@contextmanager
def asking(port: int, request: object, *headers: str) -> Iterator[socket.socket]:
    """A connection with a small buffer that has sent a request."""
    body = json.dumps(request).encode()
    lines = ["POST /v1/trace HTTP/1.1", "Host: x", "Content-Type: application/json"]
    lines += [f"Content-Length: {len(body)}", "Accept: application/jsonl", *headers, "", ""]
    with closing(socket.socket()) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.settimeout(PATIENCE)
        raw.connect(("127.0.0.1", port))
        raw.sendall("\r\n".join(lines).encode() + body)
        yield raw


@contextmanager
def stream(port: int, request: object) -> Iterator[Lines]:
    with asking(port, request) as raw, raw.makefile("rb") as file:
        yield Lines(file)
