"""An application with a clock on its event loop: how late is the loop at its latest?"""

import asyncio
import time

from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/longest-stall"
_TICK = 0.001


class Ticking:
    """Answers GET /longest-stall with the latest tick since the last answer, in milliseconds."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._latest = 0.0
        self._clock: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer for the clock; hand everything else on."""
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        self._clock = self._clock or asyncio.create_task(self._tick())
        body = f"{1e3 * self._latest:.3f}".encode()
        self._latest = 0.0
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _tick(self) -> None:
        while True:
            due = time.perf_counter() + _TICK
            await asyncio.sleep(_TICK)
            self._latest = max(self._latest, time.perf_counter() - due)
