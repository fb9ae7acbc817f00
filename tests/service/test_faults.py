"""Faults of a request: located, all at once, repeating nothing that was sent."""

import re
from collections.abc import Callable
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field
from pydantic_core._pydantic_core import list_all_errors
from starlette.testclient import TestClient

from compute.errors import Fault
from service import bodies, errors, faults
from service.bodies import Sent
from service.errors import InvalidRequest
from service.problems import pointer
from service.settings import Settings

SECRET = "a-secret-word"
SAFE = {"expected", "field_name", "class", "class_name", "method_name", "pattern"}
SAFE |= {"gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "actual_length"}
SAFE |= {"min_size", "max_size", "actual_size", "field_type", "whole_digits", "max_digits"}
SAFE |= {"decimal_places", "expected_plural", "tz_expected", "tz_actual", "expected_version"}
SAFE |= {"now_op", "attribute", "expected_schemes"}


class Part(BaseModel, extra="forbid"):
    width: int = Field(ge=1)


class Asked(BaseModel, extra="forbid", strict=True):
    kind: Literal["one", "two"]
    size: int | str = 1
    parts: dict[str, Part] = {}
    items: list[Part] = []
    flags: dict[Literal["q", "k"], bool] = {}


def found(body: bytes) -> list[Fault]:
    with pytest.raises(InvalidRequest) as raised:
        bodies.parse(Sent(body), Asked, Settings())
    return list(raised.value.refusal.faults)


def test_all_faults_come_at_once_with_their_places() -> None:
    body = b'{"parts": {"a/b~c": {"width": 0, "x": 1}}, "items": [{"width": 1}, {}]}'
    assert [(pointer(fault.place), fault.code) for fault in found(body)] == [
        ("/kind", "missing"),
        ("/parts/a~1b~0c/width", "greater_than_equal"),
        ("/parts/a~1b~0c/x", "extra_forbidden"),
        ("/items/1/width", "missing"),
    ]


def test_members_of_a_union_are_no_part_of_a_place() -> None:
    assert {fault.place for fault in found(b'{"kind": "one", "size": [1]}')} == {("size",)}


def test_key_that_is_wrong_itself_is_pointed_at() -> None:
    (fault,) = found(b'{"kind": "one", "flags": {"x": true}}')
    assert fault.place == ("flags", "x")


def test_expected_and_got_are_bounds_numbers_and_kinds() -> None:
    body = b'{"kind": 3, "parts": {"a": {"width": 0}}, "items": {}}'
    assert [(fault.expected, fault.got) for fault in found(body)] == [
        ("'one' or 'two'", 3),
        ("at least 1", 0),
        (None, "object"),
    ]


@pytest.mark.parametrize(
    "part",
    ['"kind": "%s"', '"kind": {"%s": 1}', '"kind": "one", "items": "%s"',
     '"kind": "one", "parts": {"a": "%s"}', '"kind": "one", "parts": {"a": {"width": "%s"}}'],
)  # fmt: skip
def test_text_that_was_sent_is_not_repeated(part: str) -> None:
    for fault in found(("{" + part % SECRET + "}").encode()):
        assert SECRET not in repr((fault.detail, fault.expected, fault.got, fault.place))


def test_no_message_of_pydantic_that_we_pass_on_has_a_place_for_what_was_sent() -> None:
    templates = {kind["type"]: kind["message_template_python"] for kind in list_all_errors()}
    passed_on = templates.keys() - faults.DETAILS.keys()
    leaks = {
        name: holes - SAFE
        for name in passed_on
        if (holes := set(re.findall(r"{(\w+)}", templates[name]))) - SAFE - {"error"}
    }
    assert leaks == {}


def test_more_errors_than_are_read_are_counted() -> None:
    body = b'{"kind": "one", ' + b", ".join(b'"k%d": 1' % i for i in range(25_000)) + b"}"
    with pytest.raises(InvalidRequest) as raised:
        bodies.parse(Sent(body), Asked, Settings())
    refusal = raised.value.refusal
    assert (refusal.total, len(refusal.faults)) == (25_000, 1)


def test_pointer_stops_at_a_key_too_long_to_repeat() -> None:
    assert pointer(("model", "x" * 1000, "y")) == "/model"
    assert len(pointer(("abc",) * 1000)) <= 512


def test_faults_inside_a_tensor_point_into_it(
    client: TestClient, assert_problem: Callable[..., dict[str, Any]]
) -> None:
    request = {
        "model": {"config": {"d_model": 2, "attention": {"n_heads": 1}}},
        "input": {"tensor": [[1, True], ["2", None]]},
    }
    body = assert_problem(client.post("/v1/trace", json=request), "invalid-request")
    pointers = [fault["pointer"] for fault in body["errors"]]
    assert pointers == ["/input/tensor/0/1", "/input/tensor/1/0", "/input/tensor/1/1"]


def test_problem_lists_as_many_faults_as_the_setting_says_and_counts_all(
    make_client: Callable[..., TestClient], assert_problem: Callable[..., dict[str, Any]]
) -> None:
    response = make_client(faults=3).post("/v1/trace", json={f"k{i}": 1 for i in range(9)})
    body = assert_problem(response, "invalid-request")
    assert (len(body["errors"]), body["errors_total"]) == (3, 11)  # model and input are missing


def test_places_of_compute_get_the_prefix_of_their_part_of_a_request() -> None:
    for kind, origin in errors.ORIGINS.items():
        refusal = errors.refusal_of(kind([Fault(code="x", detail="X.", place=("a", 1))]))
        inside = (*origin.prefix, "a", 1) if origin.inside else origin.prefix
        assert [fault.place for fault in refusal.faults] == [inside]
        assert refusal.status == 422
