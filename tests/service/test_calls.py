"""What every call that computes keeps to: its examples run, its answers are as described, its
limits hold, and the same request gets the same bytes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from service import errors
from service.admission import Admission, Ticket
from service.app import COMPUTING, SIZING
from service.openapi import ANSWERS

SIZED = {
    route.path for module in SIZING for route in module.router.routes if isinstance(route, APIRoute)
}
"""Calls that size a model: their answers do not grow with it, so no limit of work is theirs."""

WITHOUT_A_RUN = {"/v1/rope", *SIZED}
"""Calls that run no model: nothing of theirs is stopped."""

AssertProblem = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class Example:
    """A request that a call's description shows."""

    route: APIRoute
    name: str
    body: dict[str, Any]

    @property
    def path(self) -> str:
        return self.route.path

    def __str__(self) -> str:
        return f"{self.path}-{self.name}"


def _routes() -> Iterator[APIRoute]:
    for module in (*COMPUTING, *SIZING):
        yield from (route for route in module.router.routes if isinstance(route, APIRoute))


def _examples() -> Iterator[Example]:
    for route in _routes():
        extra = route.openapi_extra or {}
        shown = extra["requestBody"]["content"]["application/json"]["examples"]
        for name, example in shown.items():
            yield Example(route, name, example["value"])


def _answer_of(route: APIRoute) -> type:
    """What a route's description says it answers."""
    schema = route.responses[200]["content"]["application/json"]["schema"]
    reference = schema.get("anyOf", [schema])[0]["$ref"]  # the plan of a dry run comes second
    (found,) = (model for model in ANSWERS if reference.endswith(f"/{model.__name__}"))
    return found


ROUTES, EXAMPLES = list(_routes()), list(_examples())
ANSWERING = [example for example in EXAMPLES if example.path not in SIZED]
RUNS = [example for example in EXAMPLES if example.path not in WITHOUT_A_RUN]
FORMED = [x for x in EXAMPLES if "application/jsonl" in x.route.responses[200]["content"]]
each_route = pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path)
each_example = pytest.mark.parametrize("example", EXAMPLES, ids=str)
each_answering = pytest.mark.parametrize("example", ANSWERING, ids=str)
each_formed = pytest.mark.parametrize("example", FORMED, ids=str)
each_run = pytest.mark.parametrize("example", RUNS, ids=str)


@each_example
def test_example_is_answered_as_described_and_twice_alike(
    client: TestClient, example: Example
) -> None:
    first, second = (client.post(example.path, json=example.body) for _ in range(2))
    assert first.status_code == 200, first.text
    assert first.content == second.content
    TypeAdapter(_answer_of(example.route)).validate_json(first.content, strict=True)


@each_formed
@pytest.mark.parametrize("form", [{"encoding": "base64"}, {"digits": 3}], ids=["base64", "digits"])
def test_example_is_answered_as_described_in_each_form_of_json(
    client: TestClient, example: Example, form: dict[str, object]
) -> None:
    answer = client.post(example.path, json={**example.body, "format": form})
    assert answer.status_code == 200, answer.text
    TypeAdapter(_answer_of(example.route)).validate_json(answer.content, strict=True)


@each_route
def test_answer_that_is_shown_is_as_described(route: APIRoute) -> None:
    shown = route.responses[200]["content"]["application/json"]["example"]
    TypeAdapter(_answer_of(route)).validate_python(shown)


@each_route
@pytest.mark.parametrize("body", [b"{}", b'{"modle": 1}', b"[]", b"null", b'"text"', b"1e999"])
def test_what_is_no_request_is_refused(
    client: TestClient, assert_problem: AssertProblem, route: APIRoute, body: bytes
) -> None:
    headers = {"content-type": "application/json"}
    assert_problem(client.post(route.path, content=body, headers=headers), "invalid-request")


@each_example
def test_unknown_key_is_told_where_it_is(
    client: TestClient, assert_problem: AssertProblem, example: Example
) -> None:
    body = {**example.body, "modle": 1}
    found = assert_problem(client.post(example.path, json=body), "invalid-request")
    assert [(fault["pointer"], fault["code"]) for fault in found["errors"]] == [
        ("/modle", "extra_forbidden")
    ]


@each_answering
def test_answer_beyond_its_limit_is_refused_with_advice(
    make_client: Callable[..., TestClient], assert_problem: AssertProblem, example: Example
) -> None:
    client = make_client(answer_elements=1)
    found = assert_problem(client.post(example.path, json=example.body), "beyond-limit")
    assert found["limit"]["name"] == "answer_elements"
    assert found["estimate"]["elements"] > 1
    assert found["advice"]


@each_run
def test_work_or_memory_beyond_its_limit_is_refused(
    make_client: Callable[..., TestClient], assert_problem: AssertProblem, example: Example
) -> None:
    client = make_client(work_flops=1, memory_bytes=1 << 20)
    found = assert_problem(client.post(example.path, json=example.body), "beyond-limit")
    assert found["limit"]["name"] in ("work_flops", "memory_bytes")


@each_run
def test_work_asks_whether_it_should_stop(
    client: TestClient,
    assert_problem: AssertProblem,
    monkeypatch: pytest.MonkeyPatch,
    example: Example,
) -> None:
    class Over(Ticket):
        def carry(self, work: Callable[..., Any], args: tuple[Any, ...]) -> Any:  # noqa: ANN401
            return work(*args)  # as if there were time left

        def check(self) -> None:
            raise errors.Deadline(1.0)

    monkeypatch.setattr(Admission, "ticket", lambda _: Over(1.0))
    assert_problem(client.post(example.path, json=example.body), "deadline")


@each_route
def test_model_that_is_not_there_is_told(
    client: TestClient, assert_problem: AssertProblem, route: APIRoute
) -> None:
    for example in (x for x in EXAMPLES if x.route is route and "model" in x.body):
        body = {**example.body, "model": {"name": "nobody"}}
        found = assert_problem(client.post(route.path, json=body), "unknown-model")
        assert found["errors"][0]["pointer"] == "/model/name"
