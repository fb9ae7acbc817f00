"""The application in this process, and the one shape of every problem."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx2 as httpx
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from service.app import create_app
from service.problems import KINDS, MEDIA_TYPE, MOST_BYTES
from service.settings import Settings
from service.storage import kept

ORIGIN = "http://page.example"

MakeClient = Callable[..., TestClient]
AssertProblem = Callable[..., dict[str, Any]]


def settings(**chosen: object) -> Settings:
    return Settings(**{"cors_origins": (ORIGIN,), **chosen})


@pytest.fixture(autouse=True)
def _without_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"GLASSBLOCK_{name.upper()}", raising=False)
    monkeypatch.setenv("GLASSBLOCK_UPLOADS", "")  # not those of this checkout


@pytest.fixture
def look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request that names a model looks at the disk."""
    monkeypatch.setattr(kept, "FRESH_SECONDS", -1.0)


@pytest.fixture
def make_app() -> Callable[..., FastAPI]:
    """An application with settings."""
    return lambda **chosen: create_app(settings(**chosen))


@pytest.fixture
def make_client(make_app: Callable[..., FastAPI]) -> Iterator[MakeClient]:
    """A client of an application with settings; requests come from a page of ORIGIN."""
    with ExitStack() as stack:

        def make(**chosen: object) -> TestClient:
            client = TestClient(make_app(**chosen), headers={"Origin": ORIGIN})
            return stack.enter_context(client)

        yield make


@pytest.fixture
def client(make_client: MakeClient) -> TestClient:
    return make_client()


@pytest.fixture
def assert_problem() -> AssertProblem:
    """Check the shape that every problem has; its body."""
    return _assert_problem


def _assert_problem(response: httpx.Response, code: str) -> dict[str, Any]:
    kind = KINDS[code]
    body: dict[str, Any] = response.json()
    assert response.headers["content-type"] == MEDIA_TYPE
    assert response.headers["access-control-allow-origin"] == ORIGIN
    assert len(response.content) <= MOST_BYTES
    assert (response.status_code, body["status"]) == (kind.status, kind.status)
    assert (body["type"], body["title"]) == (f"/problems/{code}", kind.title)
    assert body["detail"][-1] in ".?"
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", body["instance"])
    assert body["errors_total"] >= len(body["errors"])
    for fault in body["errors"]:
        assert {"pointer", "code", "detail"} <= fault.keys()
        assert fault.keys() <= {"pointer", "code", "detail", "expected", "got"}
        assert re.fullmatch(r"(/([^~/]|~[01])*)*", fault["pointer"])
    return body
