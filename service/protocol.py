"""Uvicorn's HTTP, with a bound on the head of a request, problems for what is no HTTP, and
connections that a request can close at once."""

import asyncio
from functools import partial
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from service import errors, pieces, problems
from service.errors import ServiceError
from service.settings import Settings


class Protocol(HttpToolsProtocol):
    """A connection.

    The head of a request, its first line and headers, is not held anywhere but here: it has to
    come within `head_seconds` and `head_bytes` (and what one read of the socket brings).
    """

    def __init__(self, settings: Settings, *given: Any, **named: Any) -> None:  # noqa: ANN401
        super().__init__(*given, **named)
        self._settings = settings
        self._head: int | None = 0  # bytes of a head that is not whole; None between heads
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head."""
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._wait_no_longer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; refuse a head that grows too long."""
        super().data_received(data)
        if self._head is None or self.transport.is_closing():
            return
        self._head += len(data)
        if self._head > self._settings.head_bytes:
            self._refuse(errors.HeadTooLarge(self._settings.head_bytes))

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self.scope["extensions"] = {pieces.ABORT: {"abort": self.transport.abort}}
        self._head = 0
        self._wait_for_head()

    def on_headers_complete(self) -> None:
        """The head is whole: the application takes over."""
        self._wait_no_longer()
        self._head = None
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - Uvicorn's words
        """A problem in the place of Uvicorn's words."""
        self._refuse(errors.MalformedHttp())

    def _refuse(self, error: ServiceError) -> None:
        """Answer by hand, since no request came about, and close."""
        refusal = error.refusal
        body = problems.encode(problems.problem(refusal, 1))
        headers = {
            "content-type": problems.MEDIA_TYPE,
            "content-length": str(len(body)),
            "connection": "close",
            **self._cors(),
        }
        lines = [f"{name}: {value}\r\n".encode() for name, value in headers.items()]
        self.transport.write(b"".join([STATUS_LINE[refusal.status], *lines, b"\r\n", body]))
        self.transport.close()

    def _cors(self) -> dict[str, str]:
        """What lets a page that may read answers read this one."""
        origin = dict(self.headers or []).get(b"origin", b"").decode("ascii", "replace")
        allowed = self._settings.cors_origins
        if origin in allowed or (origin and "*" in allowed):
            return {"access-control-allow-origin": origin, "vary": "Origin"}
        return {}

    def _wait_for_head(self) -> None:
        self._wait_no_longer()
        self._patience = self.loop.call_later(self._settings.head_seconds, self.transport.close)

    def _wait_no_longer(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


def protocol(settings: Settings) -> type[Protocol]:
    """What Uvicorn makes a connection with."""
    return cast(type[Protocol], partial(Protocol, settings))
