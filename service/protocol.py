"""Uvicorn's HTTP, with bounds on what comes outside of bodies, problems for what is no HTTP, and
connections that a request can close at once."""

import asyncio
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from service import errors, pieces, problems
from service.errors import ServiceError
from service.problems import Refusal
from service.settings import Settings

_MOST_PIPELINED = 32
_UPGRADE = re.compile(rb"\r\nupgrade[ \t]*:", re.I)


class Protocol(HttpToolsProtocol):
    """A connection.

    What is no body (the first line, headers, trailers, empty lines) is counted here alone: at most
    `head_bytes`, and what one read of the socket brings, between two points where the parser got
    somewhere. While no request runs, the next head has `head_seconds` to come.
    """

    def __init__(self, settings: Settings, *given: Any, **named: Any) -> None:  # noqa: ANN401
        super().__init__(*given, **named)
        self._settings = settings
        self._outside = 0  # bytes since the parser last completed a head, a body's part, a message
        self._reads_head = True
        self._patience: asyncio.TimerHandle | None = None
        self._answered: RequestResponseCycle | None = None  # Uvicorn knows the last one that came
        self._deaf = False  # nothing more is understood; what comes is read, so that no reset
        # overtakes the answers that are due

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head."""
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer; tell the request that is being answered, too."""
        self._wait_no_longer()
        super().connection_lost(exc)
        if self._runs:
            _leave(cast(RequestResponseCycle, self._answered))

    def data_received(self, data: bytes) -> None:
        """Read on; refuse what grows too long outside of a body."""
        if self._deaf or self.transport.is_closing():
            return
        begins = self._reads_head and not self._outside
        self._outside += len(data)
        super().data_received(_without_upgrade(data) if begins else data)
        if self._outside > self._settings.head_bytes and not self._deaf:
            self._refuse(errors.HeadTooLarge(self._settings.head_bytes))

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self.scope["extensions"] = {pieces.ABORT: {"abort": self.transport.abort}}
        self._reads_head = True
        self._wait_for_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; trailers come after the application has them all, and are dropped."""
        if self._reads_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is whole: the application takes over."""
        self._wait_no_longer()
        self._outside, self._reads_head = 0, False
        super().on_headers_complete()
        if len(self.pipeline) > _MOST_PIPELINED:
            self.transport.abort()

    def on_body(self, body: bytes) -> None:
        """A part of a body, which the application counts."""
        self._outside = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is whole; where its answer is too, the next one may come."""
        self._outside, self._reads_head = 0, True
        super().on_message_complete()
        if not self._runs:
            self._wait_for_head()

    def on_response_complete(self) -> None:
        """An answer is whole; the next request may come, or be next in line."""
        super().on_response_complete()
        if not self._runs and not self.transport.is_closing():
            self._wait_for_head()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - Uvicorn's words
        """A problem in the place of Uvicorn's words."""
        self._refuse(errors.MalformedHttp())

    @property
    def _runs(self) -> bool:
        """Whether a request is being answered, or will be."""
        return next(self._due(), None) is not None

    def _due(self) -> Iterator[RequestResponseCycle]:
        """The requests whose answers are not whole, in their order."""
        if self._answered is not None and not self._answered.response_complete:
            yield self._answered
        yield from (cycle for cycle, _ in reversed(self.pipeline))

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def _refuse(self, error: ServiceError) -> None:
        """Answer by hand, since no request came about, and close.

        Answers that are due or under way come first, whole: then nothing more is said. A request
        whose body broke off gets no other.
        """
        if self.transport.is_closing():
            return
        self._deaf = True
        whole = [cycle for cycle in self._due() if not cycle.more_body]
        if whole:
            whole[-1].keep_alive = False
        elif self._runs:
            _leave(self.cycle)
            self._say(error.refusal)
        elif self._reads_head:
            self._say(error.refusal)
        else:  # the rest of a body whose request has its answer
            self.transport.close()

    def _say(self, refusal: Refusal) -> None:
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
        self._patience = self.loop.call_later(self._settings.head_seconds, self._lose_patience)

    def _wait_no_longer(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _lose_patience(self) -> None:
        if not self._runs:
            self.transport.close()


def _leave(cycle: RequestResponseCycle) -> None:
    """Tell a request that its client is gone."""
    cycle.disconnected = True
    cycle.message_event.set()


def _without_upgrade(data: bytes) -> bytes:
    """A head without its offer of another protocol: for the parser the body would be that's."""
    head, end, rest = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"\r\nx-not-upgraded:", head) + end + rest


def protocol(settings: Settings) -> type[Protocol]:
    """What Uvicorn makes a connection with."""
    return cast(type[Protocol], partial(Protocol, settings))
