"""A client that costs little: raw HTTP over asyncio, several connections, answers counted.

    python -m benchmarks.load '{"port": 8000, "path": "/", "connections": 8, "seconds": 1, …}'

Prints JSON: requests a second, after a warm-up.
"""

import asyncio
import base64
import json
import socket
import sys
import time
from collections.abc import Mapping

import httptools


class Connection(asyncio.Protocol):
    """Sends the same request again whenever its answer is whole."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self.answered = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """Count, and ask again."""
        status = self._parser.get_status_code()
        if status != 200:
            raise SystemExit(f"status {status}")
        self.answered += 1
        self._parser = httptools.HttpResponseParser(self)
        assert self._transport is not None
        self._transport.write(self._request)


def raw(method: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """The bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"{name}: {word}" for name, word in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def one(port: int, request: bytes) -> bytes:
    """The body of the answer to one request, in this thread; raises where it is no success."""
    found = _Whole()
    _talk(port, request, found)
    if found.parser.get_status_code() != 200:
        raise RuntimeError(bytes(found.body[:2000]))
    return bytes(found.body)


def _talk(port: int, request: bytes, found: "_Whole") -> None:
    """Ask, and read on until the answer is whole."""
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        connection.sendall(request)
        while not found.is_whole:
            data = connection.recv(1 << 20)
            if not data:
                raise ConnectionError("the answer broke off")
            found.parser.feed_data(data)


class _Whole:
    """One answer, collected."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.body = bytearray()
        self.is_whole = False

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.is_whole = True


def read_and_drop(port: int, request: bytes) -> int:
    """How many bytes an answer has, none of them kept; the last of them must end a line."""
    found = _Counted()
    _talk(port, request, found)
    if found.parser.get_status_code() != 200 or b'"end"' not in found.tail:
        raise RuntimeError(found.tail)
    return found.size


class _Counted(_Whole):
    """One answer, counted; its last bytes are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0
        self.tail = b""

    def on_body(self, body: bytes) -> None:
        self.size += len(body)
        self.tail = (self.tail + body)[-4096:]


async def _rate(port: int, request: bytes, connections: int, warm: float, seconds: float) -> float:
    loop = asyncio.get_running_loop()
    made = [
        (await loop.create_connection(lambda: Connection(request), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
    await asyncio.sleep(warm)
    before, start = sum(each.answered for each in made), time.perf_counter()
    await asyncio.sleep(seconds)
    answered = sum(each.answered for each in made) - before
    return answered / (time.perf_counter() - start)


def main() -> None:
    """Print the rate of the request told."""
    told = json.loads(sys.argv[1])
    request = base64.b64decode(told["request"])
    rate = _rate(told["port"], request, told["connections"], told["warm"], told["seconds"])
    print(json.dumps({"rate": asyncio.run(rate)}))


if __name__ == "__main__":
    main()
