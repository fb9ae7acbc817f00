"""A JSON answer made of pieces that are never joined: large answers are not copied."""

import logging
from asyncio import sleep
from collections.abc import Iterator, Mapping, Sequence

import anyio
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from service.held import Held

ABORT = "glassblock.abort"
"""The extension of a scope that closes its connection at once: {"abort": a function}."""

CHUNK_BYTES = 1 << 18

log = logging.getLogger("glassblock")


class JsonPieces(Response):
    """Sends pieces of one JSON text; `seconds` by step go to the header Server-Timing.

    The text counts as held while it is sent. A client that leaves a chunk of it untaken for
    `send_seconds` is cut off.
    """

    media_type = "application/json"

    def __init__(
        self,
        pieces: Sequence[bytes],
        seconds: Mapping[str, float],
        *,
        held: Held,
        send_seconds: float,
    ) -> None:
        timing = ", ".join(f"{step};dur={1e3 * took:.3f}" for step, took in seconds.items())
        super().__init__(headers={"Server-Timing": timing})
        self._pieces = pieces
        self._held = held
        self._send_seconds = send_seconds
        self._size = sum(map(len, pieces))
        self.headers["Content-Length"] = str(self._size)

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Send the head, then each piece."""
        try:
            with self._held.count(self._size):
                await self._send(send)
        except TimeoutError:
            log.info("An answer was cut: %g s were not enough to take a part.", self._send_seconds)
            await cut(scope)

    async def _send(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await self._in_time(send, start)
        for chunk in self._chunks():
            await self._in_time(
                send, {"type": "http.response.body", "body": chunk, "more_body": True}
            )
        await self._in_time(send, {"type": "http.response.body", "body": b""})

    async def _in_time(self, send: Send, message: Message) -> None:
        with anyio.fail_after(self._send_seconds):
            await send(message)

    def _chunks(self) -> Iterator[bytes]:
        for piece in self._pieces:
            for at in range(0, len(piece), CHUNK_BYTES):
                yield piece[at : at + CHUNK_BYTES]


async def cut(scope: Scope) -> None:
    """Close the connection of a request, dropping what is not sent yet.

    A server without the extension ABORT closes it when an answer ends before its length.
    """
    extension = scope.get("extensions", {}).get(ABORT)
    if extension is not None:
        extension["abort"]()
        await sleep(0)  # the server learns of it before the request ends
