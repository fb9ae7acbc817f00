"""The real application in this process, called over ASGI, and what it is held against."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Scope

from benchmarks.sides import kept, ours, requests
from benchmarks.sides.requests import Asked
from compute.trace import Run, trace
from compute.types import Array
from service.app import create_app
from service.settings import Settings

_BATCH, _WIDE_BATCH = 10, 4
"""Requests of one call, so that starting the loop and its thread weighs little."""


def small(models: str) -> Callable[[], object]:
    """Small requests, all stages, one after the other."""
    return _repeated(create_app(Settings(models=(Path(models),))), requests.small(), _BATCH)


def small_parts() -> Callable[[], object]:
    """As often: a hello world over ASGI, the product's own compute, orjson of its arrays."""
    hello = _client(hello_world())
    compute = ours.small()
    asked = Asked(b"")
    runner = asyncio.Runner()

    async def parts() -> None:
        for _ in range(_BATCH):
            await hello(asked, "GET", "/")
            orjson.dumps(_contiguous(compute()), option=orjson.OPT_SERIALIZE_NUMPY)

    return lambda: runner.run(parts())


def wide(models: str, accept: str) -> Callable[[], object]:
    """A request for patterns and contributions of the large block."""
    return _repeated(
        create_app(Settings(models=(Path(models),))), requests.wide(accept), _WIDE_BATCH
    )


def wide_parts(*, copied: bool) -> Callable[[], object]:
    """The same arrays: computed, then printed by orjson or copied once."""
    run = _wide_run()

    def parts() -> object:
        made = {each.wanted.name: each.values for each in trace(run).made}
        if copied:
            return [values.tobytes() for values in made.values()]
        return orjson.dumps(made, option=orjson.OPT_SERIALIZE_NUMPY)

    return lambda: [parts() for _ in range(_WIDE_BATCH)]


def _wide_run() -> Run:
    return ours.run(ours.stack(1, kept.LARGE), 128, list(requests.SHOWN))


def hello_world() -> FastAPI:
    """What FastAPI takes at least."""
    app = FastAPI(openapi_url=None)

    @app.get("/")
    async def hello() -> dict[str, str]:
        return {"hello": "world"}

    return app


def _contiguous(made: dict[str, Array]) -> dict[str, Array]:
    """orjson prints nothing else."""
    return {name: np.ascontiguousarray(values) for name, values in made.items()}


def _repeated(app: ASGIApp, asked: Asked, times: int) -> Callable[[], object]:
    call = _client(app)
    runner = asyncio.Runner()

    async def requested() -> None:
        for _ in range(times):
            await call(asked, "POST", "/v1/trace")

    return lambda: runner.run(requested())


def _client(app: ASGIApp) -> Callable[[Asked, str, str], Any]:
    """Calls an application with one request; raises where the answer is no success."""

    async def call(asked: Asked, method: str, path: str) -> list[bytes]:
        messages: list[Message] = [{"type": "http.request", "body": asked.body}]
        pieces: list[bytes] = []
        status = 0

        async def receive() -> Message:
            if messages:
                return messages.pop()
            await asyncio.get_running_loop().create_future()
            raise AssertionError

        async def send(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            pieces.append(message.get("body", b""))

        await app(_scope(asked, method, path), receive, send)
        if status != 200:
            raise RuntimeError(b"".join(pieces)[:2000])
        return pieces

    return call


def _scope(asked: Asked, method: str, path: str) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), word.encode()) for name, word in asked.sent.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "state": {},
    }
