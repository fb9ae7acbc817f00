"""What a body must be before anything reads it, and what is said about one that is not."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.testclient import TestClient

from service import bodies
from service.forms import form

JSON = {"Content-Type": "application/json"}
TRACE = {
    "model": {"config": {"d_model": 2, "attention": {"n_heads": 1}}},
    "input": {"tensor": [[1, 2]]},
    "select": ["resid_post"],
}


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/octet-stream", "application/x-www-form-urlencoded", "",
     "multipart/form-data; boundary=x", "application/jsonl", "application/json; charset=latin-1"],
)  # fmt: skip
def test_other_media_types_are_refused(
    client: TestClient, assert_problem: Callable[..., dict[str, Any]], content_type: str
) -> None:
    response = client.post(
        "/v1/trace", content=b"\x89PNG\x00\xff", headers={"Content-Type": content_type}
    )
    assert_problem(response, "unsupported-media-type")


def test_missing_media_type_is_refused(
    client: TestClient, assert_problem: Callable[..., dict[str, Any]]
) -> None:
    assert_problem(client.post("/v1/trace", content=b"{}"), "unsupported-media-type")


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "gzip, identity"])
def test_compressed_bodies_are_refused(
    client: TestClient, assert_problem: Callable[..., dict[str, Any]], encoding: str
) -> None:
    headers = {**JSON, "Content-Encoding": encoding}
    response = client.post("/v1/trace", content=b"{}", headers=headers)
    assert_problem(response, "unsupported-media-type")


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "Application/JSON", "application/json; charset=utf-8",
     'application/json;charset="UTF-8"', "application/json; profile=x"],
)  # fmt: skip
def test_json_in_utf_8_is_taken(client: TestClient, content_type: str) -> None:
    response = client.post("/v1/trace", json=TRACE, headers={"Content-Type": content_type})
    assert response.status_code == 200


@pytest.mark.parametrize(
    "accept",
    ["*/*", "application/*", "application/json", "text/html, application/json;q=0.1",
     "application/problem+json, application/json", "application/xml;q=0, */*;q=0.1", ""],
)  # fmt: skip
def test_accept_that_allows_json_is_served(client: TestClient, accept: str) -> None:
    response = client.post("/v1/trace", json=TRACE, headers={"Accept": accept})
    assert response.status_code == 200


@pytest.mark.parametrize(
    "accept",
    ["text/html", "application/problem+json", "application/json;q=0", "*/*;q=0",
     "application/*;q=0, */*", "image/*", "nonsense"],
)  # fmt: skip
def test_accept_that_excludes_json_is_refused(
    client: TestClient, assert_problem: Callable[..., dict[str, Any]], accept: str
) -> None:
    response = client.post("/v1/trace", json=TRACE, headers={"Accept": accept})
    assert_problem(response, "not-acceptable")


@pytest.mark.parametrize("accept", ["application/json;q=0, */*", "application/json;q=0.1, */*"])
def test_accept_that_likes_json_least_is_served_in_another_form(
    client: TestClient, accept: str
) -> None:
    response = client.post("/v1/trace", json=TRACE, headers={"Accept": accept})
    assert response.status_code == 200
    assert response.headers["content-type"] == form.SAFETENSORS


def test_weight_that_is_no_number_counts_as_one() -> None:
    headers = Headers({"accept": "application/json;q=high"})
    assert bodies.acceptable(headers, form.JSON_ALONE) == form.JSON


def test_body_announced_too_large_is_refused_before_it_is_read(
    make_client: Callable[..., TestClient], assert_problem: Callable[..., dict[str, Any]]
) -> None:
    client = make_client(body_bytes=1000)
    body = assert_problem(
        client.post("/v1/trace", content=b"x" * 1001, headers=JSON), "body-too-large"
    )
    assert body["limit"] == {"name": "body_bytes", "value": 1000, "got": 1001}


def test_body_in_chunks_is_counted(
    make_client: Callable[..., TestClient], assert_problem: Callable[..., dict[str, Any]]
) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(11):
            yield b" " * 100

    client = make_client(body_bytes=1000)
    body = assert_problem(
        client.post("/v1/trace", content=chunks(), headers=JSON), "body-too-large"
    )
    assert body["limit"] == {"name": "body_bytes", "value": 1000}


def test_body_of_exactly_the_limit_is_read(
    make_client: Callable[..., TestClient], assert_problem: Callable[..., dict[str, Any]]
) -> None:
    client = make_client(body_bytes=1000)
    response = client.post("/v1/trace", content=b" " * 1000, headers=JSON)
    assert_problem(response, "malformed-json")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"a": "\xff"}', "byte 7"),
        (b"{} {}", "line 1, column 4"),
        (b'{"a": NaN}', "column 7"),
        (b'{"a": -Infinity}', "column"),
        (b'{"a": 1' + b"0" * 5_000 + b"}", "too many digits, at line 1"),
        (b'{"a": 1, "b": {"secret": 1, "c": 2, "secret": 2}}', "stands twice in one object"),
        (b'{"a": "\\ud800"}', "column"),
        (b"[" * 100_000, "nested too deep, at line 1, column 20"),
        (b'{"a":' * 5_000, "nested too deep, at line 1"),
        ("{}".encode("utf-16"), "not UTF-8"),
        (b'{"secret": secret}', "column"),
    ],
)
def test_body_that_is_not_json_is_refused_with_the_place_and_nothing_of_it(
    client: TestClient,
    assert_problem: Callable[..., dict[str, Any]],
    body: bytes,
    said: str,
) -> None:
    response = client.post("/v1/trace", content=body, headers=JSON)
    assert said in assert_problem(response, "malformed-json")["detail"]
    assert "secret" not in response.text


@pytest.mark.parametrize(
    "body", ["null", "[]", "1", '"text"', "true", "[" * 190 + "]" * 190, "18446744073709551616"]
)
def test_json_that_is_no_object_is_refused_by_the_schema(
    client: TestClient, assert_problem: Callable[..., dict[str, Any]], body: str
) -> None:
    response = client.post("/v1/trace", content=body.encode(), headers=JSON)
    assert assert_problem(response, "invalid-request")["errors"][0]["pointer"] == ""


@pytest.mark.parametrize(
    ("body", "habit"),
    [
        (b'{"a": NaN}', "NaN is no number"),
        (b'{"a": [1, -Infinity]}', "Infinity is no number"),
        (b"{'a': 1}", 'begin and end with "'),
        (b'{"a": True}', "true, false and null"),
        (b'{"a": None}', "true, false and null"),
        (b"[1,\n2,]", "a comma before it is too many"),
        (b'{"a": 1,}', "a comma before it is too many"),
        (b"[1,,2]", "a comma too many"),
        (b'{"a": 1} // x', "no comments"),
    ],
)
def test_habit_of_another_language_is_answered_with_what_json_has(
    client: TestClient, assert_problem: Callable[..., dict[str, Any]], body: bytes, habit: str
) -> None:
    response = client.post("/v1/trace", content=body, headers=JSON)
    assert habit in assert_problem(response, "malformed-json")["detail"]
