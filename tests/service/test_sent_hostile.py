"""Safetensors bodies that are long, cut, lying or nonsense: refused, soon, in little memory."""

import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import httpx2 as httpx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from binary_bodies import SAFETENSORS, body, framed
from schemas.trace import TraceRequest
from service import bodies
from service.bodies import Sent
from service.errors import ServiceError
from service.settings import Settings

AssertProblem = Callable[..., dict[str, Any]]

REQUEST: dict[str, Any] = {
    "model": {"config": {"d_model": 4, "vocab": 5, "attention": {"n_heads": 2}}},
    "select": ["resid_pre"],
}
ROWS = np.arange(8, dtype=np.float32).reshape(2, 4)
TENSOR = {"/input/tensor": ROWS}


def post(client: TestClient, content: bytes) -> httpx.Response:
    return client.post("/v1/trace", content=content, headers=SAFETENSORS)


def _status(content: bytes) -> int:
    """200 where a body is read as a trace request, else the status of what refuses it."""
    try:
        bodies.parse(Sent(content, SAFETENSORS["Content-Type"]), TraceRequest, Settings())
    except ServiceError as error:
        return error.refusal.status
    return 200


def test_body_is_bounded_by_a_limit_of_its_own(
    make_client: Callable[..., TestClient], assert_problem: AssertProblem
) -> None:
    content = body(REQUEST, TENSOR)
    client = make_client(binary_body_bytes=len(content) - 1)
    problem = assert_problem(post(client, content), "body-too-large")
    assert problem["limit"]["name"] == "binary_body_bytes"
    chunked = client.post("/v1/trace", content=iter([content]), headers=SAFETENSORS)
    assert assert_problem(chunked, "body-too-large")["limit"]["name"] == "binary_body_bytes"
    assert post(make_client(binary_body_bytes=len(content)), content).status_code == 200


def test_tensors_do_not_count_as_json_and_the_header_does(
    make_client: Callable[..., TestClient], assert_problem: AssertProblem
) -> None:
    rows = np.ones((500, 4), np.float32)
    client = make_client(body_bytes=1000)
    assert post(client, body(REQUEST, {"/input/tensor": rows})).status_code == 200
    long = {**REQUEST, "input": {"text": "x" * 1000}}
    problem = assert_problem(post(client, body(long, {})), "beyond-limit")
    assert problem["limit"]["name"] == "body_bytes"


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        ("body_lists", "[" * 4_000),
        ("body_keys", ":" * 4_000),
        ("body_values", "," * 4_000),
        ("body_values", "\\u002c" * 4_000),
    ],
)
def test_json_under_metadata_is_counted_as_a_body_is(
    make_client: Callable[..., TestClient], assert_problem: AssertProblem, limit: str, text: str
) -> None:
    content = framed(b'{"__metadata__": {"request": "%b"}}' % text.encode())
    problem = assert_problem(post(make_client(**{limit: 900}), content), "beyond-limit")
    assert problem["limit"]["name"] == limit


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (b"", "header of the body is empty"),
        (b"{", "header of the body is not JSON: line 1"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"__metadata__": {"request": ""}}', "__metadata__, in request, is empty"),
        (b'{"__metadata__": {"request": "{\\n1}"}}', "in request, is not JSON: line 2, column 1"),
        (b'{"__metadata__": {"request": "{\\"a\\": 1, \\"a\\": 2}"}}', "twice"),
        (b'{"__metadata__": {"request": "NaN"}}', "NaN is no number"),
    ],
)
def test_json_that_is_none_is_told_apart(
    client: TestClient, assert_problem: AssertProblem, header: bytes, said: str
) -> None:
    problem = assert_problem(post(client, framed(header)), "malformed-json")
    assert said in problem["detail"]


def test_body_cut_anywhere_is_refused(client: TestClient, assert_problem: AssertProblem) -> None:
    content = body(REQUEST, TENSOR)
    assert post(client, content).status_code == 200
    for end in range(len(content)):
        answer = post(client, content[:end])
        assert 400 <= answer.status_code < 500, end
        assert_problem(answer, answer.json()["type"].rpartition("/")[2])


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_body_with_other_bytes_is_read_or_refused(data: st.DataObject) -> None:
    content = bytearray(body(REQUEST, TENSOR))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    assert _status(bytes(content)) in (200, 400, 413, 422)


@settings(max_examples=300, deadline=None)
@given(st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**64) | st.text(max_size=5)
    | st.sampled_from(["F32", "I64", "F8_E4M3"]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(["dtype", "shape", "data_offsets", "request", "__metadata__",
                         "/input/tensor", "/", "/a//b", "~2", ""]), inner, max_size=4),
    max_leaves=12,
))  # fmt: skip
def test_header_of_anything_is_refused(header: object) -> None:
    assert _status(framed(json.dumps(header).encode(), bytes(8))) in (400, 413, 422)


def _entry(begin: int, end: int, shape: str = "[2]") -> str:
    return f'{{"dtype":"F32","shape":{shape},"data_offsets":[{begin},{end}]}}'


_HUGE = ",".join(["1152921504606846976"] * 8)
_HEAD = '{"__metadata__":{"request":"{}"},'
LYING: dict[str, bytes] = {
    "100,000 tensors": framed(
        (_HEAD + ",".join(f'"/{at}":{_entry(0, 0, "[0]")}' for at in range(100_000)) + "}").encode()
    ),
    "32,000 tensors": framed(
        (_HEAD + ",".join(f'"/{at}":{_entry(0, 0, "[0]")}' for at in range(32_000)) + "}").encode()
    ),
    "8,000 tensors of wrong lengths": framed(
        (_HEAD + ",".join(f'"/{at}":{_entry(0, 9)}' for at in range(8_000)) + "}").encode()
    ),
    "8,000 tensors in one place": framed(
        (_HEAD + ",".join(f'"/{"a" * 9}/{at}":{_entry(0, 0, "[0]")}' for at in range(8_000)) + "}")
        .encode()
    ),
    "axes of 2^60": framed(f'{_HEAD}"/a":{_entry(0, 8, f"[{_HUGE}]")}}}'.encode(), bytes(8)),
    "offsets of 2^60": framed(f'{_HEAD}"/a":{_entry(1 << 60, 1 << 60, "[0]")}}}'.encode()),
    "overlap": framed(f'{_HEAD}"/a":{_entry(0, 8)},"/b":{_entry(4, 12)}}}'.encode(), bytes(12)),
    "hole": framed(f'{_HEAD}"/a":{_entry(0, 8)},"/b":{_entry(12, 20)}}}'.encode(), bytes(20)),
    "trailing bytes": framed(f'{_HEAD}"/a":{_entry(0, 8)}}}'.encode(), bytes(9)),
    "too few bytes": framed(f'{_HEAD}"/a":{_entry(0, 8)}}}'.encode(), bytes(7)),
    "backwards": framed(f'{_HEAD}"/a":{_entry(8, 0)}}}'.encode(), bytes(8)),
    "length of 2^63": (1 << 63).to_bytes(8, "little") + b"{}",
    "name twice": framed(f'{_HEAD}"/a":{_entry(0, 8)},"/a":{_entry(8, 16)}}}'.encode(), bytes(16)),
    "deep name": framed(f'{_HEAD}"{"/a" * 100}":{_entry(0, 8)}}}'.encode(), bytes(8)),
    "name of 300 letters": framed(f'{_HEAD}"/{"a" * 300}":{_entry(0, 8)}}}'.encode(), bytes(8)),
}  # fmt: skip


@pytest.mark.parametrize("name", LYING)
def test_body_that_lies_is_refused_at_once_and_in_little_memory(
    client: TestClient, assert_problem: AssertProblem, name: str
) -> None:
    start = time.perf_counter()
    answer = post(client, LYING[name])
    seconds = time.perf_counter() - start
    assert 400 <= answer.status_code < 500, answer.text
    assert_problem(answer, answer.json()["type"].rpartition("/")[2])
    assert seconds < 2
    with _peak() as peak:
        assert _status(LYING[name]) >= 400
    assert peak[0] < 40 * len(LYING[name]) + (1 << 20)


class _peak:
    """The most memory that is taken within the block."""

    def __enter__(self) -> list[int]:
        self.found: list[int] = []
        tracemalloc.start()
        return self.found

    def __exit__(self, *_: object) -> None:
        self.found.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()


def test_tensor_where_none_is_due_is_of_the_wrong_type_and_not_printed(client: TestClient) -> None:
    secret = np.full((3, 4), 73.51907, np.float32)
    for place in _places(REQUEST | {"input": {}, "interventions": [{}], "format": {}}, ""):
        request = json.loads(json.dumps(REQUEST | {"input": {}, "interventions": [{}]}))
        names = {place: secret, "/input/tensor": ROWS}
        answer = post(client, body(_without(request, place), names))
        assert 400 <= answer.status_code < 500, (place, answer.text)
        assert "73.5" not in answer.text
        assert "array" not in answer.text


def _places(value: object, at: str) -> Iterator[str]:
    """Every key of a request, and a new one beside each."""
    if isinstance(value, dict):
        yield f"{at}/new"
        for key, inner in value.items():
            yield f"{at}/{key}"
            yield from _places(inner, f"{at}/{key}")
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield from _places(value[0], f"{at}/0")


def _without(request: object, place: str) -> object:
    *parents, last = place.split("/")[1:]
    here: Any = request
    for part in parents:
        here = here[int(part)] if isinstance(here, list) else here.setdefault(part, {})
    here.pop(last, None)
    return request
