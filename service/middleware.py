"""Around the application, outermost first: CORS headers, a log line, a problem for every error.

Pure ASGI, so that bodies pass through unbuffered.
"""

import asyncio
import logging
import time

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service import errors, pieces, problems, state

log = logging.getLogger("glassblock")
_GONE = 499
_LAST_SECONDS = 0.5


class Cors(CORSMiddleware):
    """CORS headers on every answer; a refused preflight is a problem like any other."""

    def preflight_response(self, request_headers: Headers) -> Response:
        """Allow the request that a page announces, or refuse it."""
        plain = super().preflight_response(request_headers)
        if plain.status_code < 400:
            return plain
        refused = respond(errors.CorsRefused(), most=1)
        for name in ("access-control-allow-origin", "vary"):
            if name in plain.headers:
                refused.headers[name] = plain.headers[name]
        return refused


class RequestLog:
    """One line a request: method, route, status, milliseconds; never what was sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and write its line."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, start = _GONE, time.perf_counter()

        async def noting(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            milliseconds = (time.perf_counter() - start) * 1e3
            log.info("%s %s %d %.1f ms", scope["method"], _route(scope), status, milliseconds)


class CatchAll:
    """Turns an unexpected error into a problem; a client that went away gets none.

    A request that the stopping server gives up gets one too, where its answer has not begun.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; answer it where nothing below did."""
        started = False

        async def noting(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except ClientDisconnect:
            log.debug("The client went away.")
        except asyncio.CancelledError:
            if not _stopping(scope):
                raise
            await self._give_up(scope, receive, send, started)
        except Exception as error:
            if started or scope["type"] != "http":
                raise
            await respond(error, self._most)(scope, receive, send)

    async def _give_up(self, scope: Scope, receive: Receive, send: Send, started: bool) -> None:
        """End a cancelled request in order: what is left of the process's life is short."""
        _uncancel()
        if not started:
            error = errors.Draining(state.of(Request(scope)).admission.retry_after)
            with anyio.move_on_after(_LAST_SECONDS):
                await respond(error, self._most)(scope, receive, send)
                return
        log.info("An answer was cut: the service stops.")
        await pieces.cut(scope)


class Handler:
    """Answers the expected errors of a request, listing `most` faults."""

    def __init__(self, most: int) -> None:
        self._most = most

    async def __call__(self, request: Request, error: Exception) -> Response:
        """The problem of an error; for a wrong method, with every method the address takes."""
        if isinstance(error, HTTPException) and error.status_code == 405:
            return respond(errors.WrongMethod(_allowed(request)), self._most)
        return respond(error, self._most)


def respond(error: Exception, most: int) -> Response:
    """The problem of an error as a response; a fault of ours is logged under its `instance`."""
    refusal = errors.refusal_of(error)
    body = problems.problem(refusal, most)
    if refusal.status == 500:
        log.error("%s %s", body["instance"], type(error).__name__, exc_info=error)
    return Response(
        problems.encode(body),
        status_code=refusal.status,
        headers=refusal.headers,
        media_type=problems.MEDIA_TYPE,
    )


def _stopping(scope: Scope) -> bool:
    return scope["type"] == "http" and state.of(Request(scope)).admission.draining


def _uncancel() -> None:
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


def _allowed(request: Request) -> list[str]:
    asked = {"type": "http", "path": request.scope["path"], "headers": []}
    methods = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
    return [
        method
        for method in methods
        if any(
            route.matches({**asked, "method": method})[0] is Match.FULL
            for route in request.app.routes
        )
    ]


def _route(scope: Scope) -> str:
    """The route's pattern, not the path that was asked for: nobody writes into the log.

    FastAPI gives the pattern without the prefix of its router, which is literally in the path.
    """
    pattern = getattr(scope.get("route"), "path", None)
    if pattern is None:
        return "-"
    asked = scope["path"].split("/")
    prefix = asked[: len(asked) - pattern.count("/")]
    return "/".join(prefix) + str(pattern)
