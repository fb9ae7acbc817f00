"""How a caller chooses the form of an answer, and what the forms keep to."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx2 as httpx
import numpy as np
import pytest
from starlette.testclient import TestClient

from service.app import create_app
from service.settings import Settings

JSON, SAFETENSORS = "application/json", "application/vnd.safetensors"
LINES, NDJSON = "application/jsonl", "application/x-ndjson"
OFFERED = (JSON, SAFETENSORS, LINES, NDJSON)

AssertProblem = Callable[..., dict[str, Any]]

TOY = {
    "model": {"name": "eiffel-toy"},
    "input": {"text": "the Eiffel tower"},
    "select": ["A", "Z"],
}


def post(client: TestClient, accept: str | None, request: object = TOY) -> httpx.Response:
    headers = {} if accept is None else {"Accept": accept}
    client.headers.pop("accept", None)
    return client.post("/v1/trace", json=request, headers=headers)


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        (None, JSON),
        ("", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        ("text/html, */*;q=0.1", JSON),
        (SAFETENSORS, SAFETENSORS),
        ("APPLICATION/VND.Safetensors", SAFETENSORS),
        (LINES, LINES),
        (NDJSON, NDJSON),
        (f"{JSON};q=0.5, {LINES}", LINES),
        (f"{LINES};q=0.2, {SAFETENSORS};q=0.3, {JSON};q=0.1", SAFETENSORS),
        (f"{SAFETENSORS}, {JSON}", JSON),
        (f"{SAFETENSORS}, */*;q=0.1", SAFETENSORS),
        (f"*/*, {JSON};q=0", SAFETENSORS),
        (f"application/*;q=0.9, {JSON};q=0.1, {SAFETENSORS};q=0.2", LINES),
        (f"{JSON};charset=utf-8", JSON),
        (f"{LINES}; q=0.000, {NDJSON} ; Q=0.001", NDJSON),
        (f"{LINES};q=nan", LINES),
    ],
)
def test_form_is_the_one_that_the_caller_likes_best(
    client: TestClient, accept: str | None, media: str
) -> None:
    answer = post(client, accept)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == media
    assert answer.headers["vary"].replace(" ", "").lower().split(",").count("accept") == 1


@pytest.mark.parametrize("accept", ["text/html", f"{JSON};q=0", "image/*, text/*", "*/*;q=0"])
def test_form_that_is_not_offered_is_refused_with_all_that_are(
    client: TestClient, assert_problem: AssertProblem, accept: str
) -> None:
    problem = assert_problem(post(client, accept), "not-acceptable")
    for media in OFFERED:
        assert media in problem["detail"]


def test_call_without_tensors_offers_json_alone(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    headers = {"Accept": SAFETENSORS}
    refused = client.post("/v1/compare", json={"a": TOY, "b": TOY}, headers=headers)
    problem = assert_problem(refused, "not-acceptable")
    assert JSON in problem["detail"]
    assert SAFETENSORS not in problem["detail"]


def _examples() -> Iterator[tuple[str, Any]]:
    for path, calls in create_app(Settings()).openapi()["paths"].items():
        call = calls.get("post", {})
        if SAFETENSORS in call.get("responses", {}).get("200", {}).get("content", {}):
            shown = call["requestBody"]["content"][JSON]["examples"]
            yield from ((path, example["value"]) for example in shown.values())


EXAMPLES = list(_examples())
each_example = pytest.mark.parametrize(("path", "body"), EXAMPLES)


def test_calls_that_offer_forms_are_those_that_answer_tensors() -> None:
    calls = ["trace", "contributions", "subspaces", "sweep", "decode", "jacobian", "rope"]
    assert {path for path, _ in EXAMPLES} == {f"/v1/{call}" for call in calls}


@each_example
def test_place_of_each_entry_is_its_json_pointer(client: TestClient, path: str, body: Any) -> None:  # noqa: ANN401
    stored = client.post(path, json=body, headers={"Accept": SAFETENSORS}).content
    header = json.loads(stored[8 : 8 + int.from_bytes(stored[:8], "little")])
    answer = json.loads(header.pop("__metadata__")["answer"])
    for name, told in header.items():
        left = resolved(answer, name if name.startswith("/") else f"/tensors/{name}")
        assert left["entry"] == name
        assert left["shape"] == told["shape"]
    assert len(list(entries(answer))) == len(header)


def resolved(answer: Any, pointer: str) -> Any:  # noqa: ANN401
    """What a JSON Pointer points at. RFC 6901."""
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        answer = answer[int(key) if isinstance(answer, list) else key]
    return answer


def entries(value: object) -> Iterator[str]:
    """Every `entry` of an answer."""
    if isinstance(value, dict) and isinstance(value.get("entry"), str):
        yield value["entry"]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from entries(one)


@each_example
def test_answer_without_its_tensors_is_the_answer_in_json(
    client: TestClient,
    path: str,
    body: Any,  # noqa: ANN401
) -> None:
    plain = client.post(path, json=body).json()
    stored = client.post(path, json=body, headers={"Accept": SAFETENSORS}).content
    header = json.loads(stored[8 : 8 + int.from_bytes(stored[:8], "little")])
    assert same_but_for_entries(json.loads(header["__metadata__"]["answer"]), plain)


def same_but_for_entries(left: object, right: object) -> bool:
    if isinstance(left, dict) and "entry" in left:
        told = {key: x for key, x in left.items() if key not in ("entry", "dtype", "shape")}
        whole = right.keys() if isinstance(right, dict) else {"nonfinite"}
        return told.keys() <= whole
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            same_but_for_entries(left[key], right[key]) for key in left
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_but_for_entries, left, right))
    return left == right


LARGE: Mapping[str, Any] = {
    "model": {"config": {"d_model": 8, "attention": {"n_heads": 4}}},
    "input": {"tensor": np.linspace(-1, 1, 200 * 8).reshape(200, 8).tolist()},
    "select": ["scores", "Z"],
}


@pytest.mark.parametrize("encoding", ["nested", "base64"])
def test_large_tensor_comes_in_pieces_of_its_rows(client: TestClient, encoding: str) -> None:
    request = {**LARGE, "format": {"encoding": encoding}}
    head, *lines, end = map(json.loads, post(client, LINES, request).content.splitlines())
    assert "end" in end
    assert "model" in head
    whole = post(client, None, LARGE).json()["tensors"]["blocks.0.attn.scores"]
    pieces = [line for line in lines if "rows" in line]
    assert len(pieces) == len(lines) - 1 == -(-4 * 200 * 200 // (1 << 16))
    assert [piece["shape"] for piece in pieces] == [[4, 200, 200]] * len(pieces)
    starts = [piece["rows"][0] for piece in pieces]
    assert [0, *(piece["rows"][1] for piece in pieces)] == [*starts, 4 * 200]
    rows = [row for head in whole["data"] for row in head]
    if encoding == "nested":
        for piece in pieces:
            assert piece["data"] == rows[slice(*piece["rows"])]
            assert piece["nonfinite"] == "-inf"


def numbers(seed: int) -> Any:  # noqa: ANN401
    drawn = np.random.default_rng(seed)
    return drawn.standard_normal((3, 8)) * 10.0 ** drawn.integers(-30, 30, (3, 8))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("digits", [1, 3, 7, 9, 14, 15])
def test_digits_round_as_python_formats(client: TestClient, dtype: str, digits: int) -> None:
    rows = numbers(digits)
    rows[0, :4] = [2.675, 0.125, 2.5, -0.0]  # near a tie, ties, and a zero with a sign
    request = {
        "model": {"config": {"d_model": 8, "attention": {"n_heads": 1}}},
        "input": {"tensor": rows.tolist()},
        "select": ["X"],
        "dtype": dtype,
        "format": {"digits": digits},
    }
    found = post(client, None, request).json()["tensors"]["blocks.0.resid_pre"]
    exact = rows.astype(dtype).astype(np.float64)
    wanted = [[float(format(x, f".{digits}g")) for x in row] for row in exact.tolist()]
    assert found["rounded"] == digits
    assert np.array(found["data"], dtype).tobytes() == np.array(wanted, dtype).tobytes()


def test_largest_numbers_stay_where_rounding_would_make_them_infinite(client: TestClient) -> None:
    largest = 3.4028235e38
    request = {
        "model": {"config": {"d_model": 1, "attention": {"n_heads": 1}}},
        "input": {"tensor": [[largest], [-largest], [3.4e38]]},
        "select": ["X"],
        "format": {"digits": 4},
    }
    found = post(client, None, request).json()["tensors"]["blocks.0.resid_pre"]
    assert found["data"] == [[largest], [-largest], [3.4e38]]
    assert "nonfinite" not in found


def test_whole_numbers_masks_and_a_cache_are_never_rounded(client: TestClient) -> None:
    request = {
        "model": {"name": "induction"},
        "input": {"text": "GLASSGLA"},
        "select": ["logits"],
        "cache_as": "nested",
    }
    exact, coarse = (
        client.post("/v1/decode", json={**request, "format": asked}).json()
        for asked in ({}, {"digits": 2})
    )
    assert coarse["cache"] == exact["cache"]
    assert coarse["input"] == exact["input"]
    assert coarse["steps"][0]["logits"] != exact["steps"][0]["logits"]
    wanted = [float(f"{x:.2g}") for x in exact["steps"][0]["logits"]]
    assert coarse["steps"][0]["logits"] == wanted


@pytest.mark.parametrize(
    ("accept", "encoding", "limit"),
    [
        (JSON, "nested", "answer_elements"),
        (JSON, "base64", "binary_elements"),
        (SAFETENSORS, "nested", "binary_elements"),
        (LINES, "nested", "binary_elements"),
    ],
)
def test_limit_of_elements_is_that_of_the_form(
    make_client: Callable[..., TestClient],
    assert_problem: AssertProblem,
    accept: str,
    encoding: str,
    limit: str,
) -> None:
    client = make_client(answer_elements=1000, binary_elements=2000)
    for elements, is_allowed in ((10, True), (80, limit == "binary_elements"), (130, False)):
        request = {
            "model": {"config": {"d_model": 16, "attention": {"n_heads": 1}}},
            "input": {"tensor": [[0.5] * 16] * elements},
            "select": ["X"],
            "format": {"encoding": encoding},
        }
        answer = post(client, accept, request)
        if is_allowed:
            assert answer.status_code == 200, answer.text
        else:
            assert assert_problem(answer, "beyond-limit")["limit"]["name"] == limit


@pytest.mark.parametrize(
    ("format_", "pointer"),
    [
        ({"digits": 0}, "/format/digits"),
        ({"digits": 16}, "/format/digits"),
        ({"digits": 2.5}, "/format/digits"),
        ({"encoding": "hex"}, "/format/encoding"),
        ({"nested": True}, "/format/nested"),
        ([], "/format"),
    ],
)
def test_format_that_there_is_not_is_told_where_it_is(
    client: TestClient, assert_problem: AssertProblem, format_: object, pointer: str
) -> None:
    problem = assert_problem(post(client, None, {**TOY, "format": format_}), "invalid-request")
    assert [fault["pointer"] for fault in problem["errors"]] == [pointer]
