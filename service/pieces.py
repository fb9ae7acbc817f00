"""An answer made of pieces that are never joined: large answers are not copied."""

import logging
import time
from asyncio import sleep
from collections.abc import Iterator, Mapping, Sequence

import anyio
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from service.forms.tensors import Piece
from service.held import Held

ABORT = "glassblock.abort"
"""The extension of a scope that closes its connection at once: {"abort": a function}."""

CHUNK_BYTES = 1 << 19

SLOWEST = 1 << 15
"""Bytes a second (32 KiB): the least that a reader has to take, all in all."""

CHUNKS_A_TURN = 2
"""They are taken in a millisecond."""

log = logging.getLogger("glassblock")


class Cut(Exception):
    """A reader was too slow."""


class Reader:
    """Who an answer is sent to: its head, then chunks of its body.

    Each may stay untaken for `send_seconds`; all together for that long and a second more for
    every `SLOWEST` bytes that were taken. Then it is Cut.
    """

    def __init__(self, send: Send, send_seconds: float) -> None:
        self._send = send
        self._seconds = send_seconds
        self._left = send_seconds

    async def head(self, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Begin an answer that is one."""
        await self._in_time({"type": "http.response.start", "status": 200, "headers": headers})

    async def take(self, pieces: Sequence[Piece], *, whole: bool = False) -> None:
        """Some of the body, or the rest of it; after some chunks others have their turn."""
        every = list(chunks(pieces)) or [b""]
        for at, chunk in enumerate(every, 1):
            more = not whole or at < len(every)
            await self._in_time({"type": "http.response.body", "body": chunk, "more_body": more})
            self._left += len(chunk) / SLOWEST
            if at % CHUNKS_A_TURN == 0 and at < len(every):
                await sleep(0)

    async def end(self) -> None:
        """The body is whole."""
        await self._in_time({"type": "http.response.body", "body": b""})

    async def _in_time(self, message: Message) -> None:
        start = time.monotonic()
        with anyio.move_on_after(min(self._left, self._seconds)) as patience:
            await self._send(message)
        if patience.cancelled_caught:
            log.info("An answer was cut: its reader takes too little of it.")
            raise Cut
        self._left -= time.monotonic() - start


class Pieces(Response):
    """Sends the pieces of one answer; `seconds` by step go to the header Server-Timing.

    The answer counts as held while it is sent. A client that is too slow a Reader is cut off.
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        seconds: Mapping[str, float],
        *,
        media: str,
        held: Held,
        send_seconds: float,
    ) -> None:
        super().__init__(headers=headers(seconds), media_type=media)
        self._pieces = pieces
        self._held = held
        self._send_seconds = send_seconds
        self._size = sum(map(len, pieces))
        self.headers["Content-Length"] = str(self._size)

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Send the head, then each piece."""
        reader = Reader(send, self._send_seconds)
        try:
            with self._held.count(self._size):
                await reader.head(self.raw_headers)
                await reader.take(self._pieces, whole=True)
        except Cut:
            await cut(scope)


def headers(seconds: Mapping[str, float]) -> dict[str, str]:
    """The headers of every answer that was computed."""
    timing = ", ".join(f"{step};dur={1e3 * took:.3f}" for step, took in seconds.items())
    return {"Server-Timing": timing, "Vary": "Accept"}


def chunks(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Small pieces joined, large ones in parts that are not copied."""
    small: list[Piece] = []
    waiting = 0
    for piece in pieces:
        if len(piece) + waiting > CHUNK_BYTES and small:
            yield b"".join(small)
            small, waiting = [], 0
        if len(piece) <= CHUNK_BYTES:
            small.append(piece)
            waiting += len(piece)
            continue
        for at in range(0, len(piece), CHUNK_BYTES):
            yield memoryview(piece)[at : at + CHUNK_BYTES]
    if small:
        yield b"".join(small)


async def cut(scope: Scope) -> None:
    """Close the connection of a request, dropping what is not sent yet.

    A server without the extension ABORT closes it when an answer ends before its length.
    """
    extension = scope.get("extensions", {}).get(ABORT)
    if extension is not None:
        extension["abort"]()
        await sleep(0)  # the server learns of it before the request ends
