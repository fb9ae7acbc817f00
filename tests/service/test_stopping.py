"""What becomes of a request that a stopping server gives up."""

import asyncio
import json
from collections.abc import Callable

import pytest
from fastapi import FastAPI
from starlette.types import Message, Scope

from service.pieces import ABORT

MakeApp = Callable[..., FastAPI]
REQUEST = json.dumps(
    {
        "model": {"config": {"d_model": 2, "attention": {"n_heads": 1}}},
        "input": {"tensor": [[1, 2]]},
    }
).encode()


class Client:
    """Announces a body and takes its answer: `body` may never come, the answer may be left."""

    def __init__(self, app: FastAPI, body: bytes | None, takes: bool) -> None:
        self._app = app
        self._body = body
        self._takes = takes
        self.reached = asyncio.Event()
        self.answered: list[Message] = []
        self.aborted = 0

    def scope(self) -> Scope:
        headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
        address = {"method": "POST", "path": "/v1/trace", "query_string": b"", "headers": headers}
        return {"type": "http", "extensions": {ABORT: {"abort": self._abort}}, **address}

    def _abort(self) -> None:
        self.aborted += 1

    async def receive(self) -> Message:
        if self._body is None:
            self.reached.set()
            await asyncio.Event().wait()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        if not self._takes and message["type"] == "http.response.body":
            self.reached.set()
            await asyncio.Event().wait()
        self.answered.append(message)

    async def given_up(self, draining: bool) -> None:
        """Wait until the request hangs, then cancel it, as a server does that stops."""
        task = asyncio.create_task(self._app(self.scope(), self.receive, self.send))
        await self.reached.wait()
        if draining:
            self._app.state.glassblock.admission.drain()
        task.cancel()
        await task


def test_request_without_an_answer_gets_the_problem_of_a_stopping_service(
    make_app: MakeApp,
) -> None:
    async def run() -> tuple[FastAPI, Client]:
        app = make_app()
        client = Client(app, body=None, takes=True)
        await client.given_up(draining=True)
        return app, client

    app, client = asyncio.run(run())
    start, body = client.answered
    assert start["status"] == 503
    assert json.loads(body["body"])["type"] == "/problems/draining"
    assert client.aborted == 0
    assert app.state.glassblock.held.total == 0


@pytest.mark.parametrize("body", [REQUEST, b"{}"])
def test_answer_that_has_begun_is_cut(make_app: MakeApp, body: bytes) -> None:
    async def run() -> tuple[FastAPI, Client]:
        app = make_app()
        client = Client(app, body, takes=False)
        await client.given_up(draining=True)
        return app, client

    app, client = asyncio.run(run())
    assert [message["type"] for message in client.answered] == ["http.response.start"]
    assert client.aborted == 1
    assert app.state.glassblock.held.total == 0


def test_cancelling_means_what_it_means_while_the_service_goes_on(make_app: MakeApp) -> None:
    async def run() -> Client:
        client = Client(make_app(), body=None, takes=True)
        with pytest.raises(asyncio.CancelledError):
            await client.given_up(draining=False)
        return client

    assert asyncio.run(run()).answered == []
