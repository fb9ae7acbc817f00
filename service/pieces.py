"""A JSON answer made of pieces that are never joined: large answers are not copied."""

from collections.abc import Mapping, Sequence

from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class JsonPieces(Response):
    """Sends pieces of one JSON text; `seconds` by step go to the header Server-Timing."""

    media_type = "application/json"

    def __init__(self, pieces: Sequence[bytes], seconds: Mapping[str, float]) -> None:
        timing = ", ".join(f"{step};dur={1e3 * took:.3f}" for step, took in seconds.items())
        super().__init__(headers={"Server-Timing": timing})
        self._pieces = pieces
        self.headers["Content-Length"] = str(sum(map(len, pieces)))

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send the head, then each piece."""
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        for piece in self._pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
