"""Requests as one safetensors body: answered as the same in JSON, refused in their places."""

import base64
import json
import struct
from collections.abc import Callable
from typing import Any

import httpx2 as httpx
import numpy as np
import pytest
from safetensors.numpy import load
from starlette.testclient import TestClient

from binary_bodies import SAFETENSORS, body, by_hand, lifted
from door import calls
from door.case import unescaped
from schemas.trace import TraceRequest
from service import bodies
from service.bodies import Sent
from service.settings import Settings

AssertProblem = Callable[..., dict[str, Any]]

MEDIA = SAFETENSORS["Content-Type"]
REQUEST: dict[str, Any] = {
    "model": {"config": {"d_model": 4, "vocab": 5, "attention": {"n_heads": 2}}},
    "select": ["resid_pre"],
}
ROWS = np.arange(8, dtype=np.float32).reshape(2, 4)
TENSOR = {"/input/tensor": ROWS}
F32 = ("F32", [2, 4], ROWS.tobytes())

SIZED = {name for name, (path, _) in calls.ANSWERED.items() if "/sizing" in path}
COMPUTED = [name for name in calls.ANSWERED if name not in SIZED]


def post(
    client: TestClient, content: bytes, path: str = "/v1/trace", **headers: str
) -> httpx.Response:
    return client.post(path, content=content, headers={**SAFETENSORS, **headers})


def parsed(content: bytes) -> TraceRequest:
    return bodies.parse(Sent(content, MEDIA), TraceRequest, Settings())


def faults(problem: dict[str, Any]) -> list[tuple[str, str]]:
    return [(fault["pointer"], fault["code"]) for fault in problem["errors"]]


@pytest.mark.parametrize("name", COMPUTED)
def test_every_call_that_reads_tensors_answers_as_to_json(client: TestClient, name: str) -> None:
    path, request = calls.ANSWERED[name]
    in_json = client.post(path, json=request)
    answer = post(client, lifted(request), path)
    assert in_json.status_code == 200
    assert answer.content == in_json.content


def test_places_in_both_runs_of_a_comparison_are_filled(client: TestClient) -> None:
    request = {
        name: {**REQUEST, "input": {"token_ids": [0, 1, at]}} for at, name in enumerate("ab")
    }
    content = lifted(request)
    assert {*load(content)} == {"/a/input/token_ids", "/b/input/token_ids"}
    answer = post(client, content, "/v1/compare")
    assert answer.content == client.post("/v1/compare", json=request).content


@pytest.mark.parametrize("name", SIZED)
def test_calls_that_read_no_tensor_take_json_alone(
    client: TestClient, assert_problem: AssertProblem, name: str
) -> None:
    path, request = calls.ANSWERED[name]
    answer = post(client, body(request, {}), path)
    problem = assert_problem(answer, "unsupported-media-type")
    assert MEDIA not in problem["detail"] + answer.headers["accept"]


def test_other_media_types_are_refused_with_those_that_are_taken(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    answer = client.post("/v1/trace", content=b"{}", headers={"Content-Type": "text/plain"})
    problem = assert_problem(answer, "unsupported-media-type")
    assert f"application/json or {MEDIA}" in problem["detail"]
    assert answer.headers["accept"] == f"application/json, {MEDIA}"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_come_to_the_bit(client: TestClient, dtype: str) -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((6, 4)).astype(dtype)
    smallest = np.nextafter(np.zeros((), dtype), np.ones((), dtype))
    rows[0] = [-0.0, smallest, -smallest, np.finfo(dtype).max]
    request = {
        **REQUEST,
        "dtype": dtype,
        "model": {"config": {"d_model": 4, "attention": {"n_heads": 2}, "norm": {"kind": "none"}}},
    }
    rows[0, 3] = 1.0
    answer = post(client, body(request, {"/input/tensor": rows}), Accept=MEDIA)
    assert load(answer.content)["blocks.0.resid_pre"].tobytes() == rows.tobytes()


def test_halves_of_both_kinds_are_read_exactly() -> None:
    bits = np.arange(0x10000, dtype=np.uint16)
    half = bits.view(np.float16)[np.isfinite(bits.view(np.float16))].reshape(-1, 4)
    content = by_hand(REQUEST, {"/input/tensor": ("F16", [*half.shape], half.tobytes())})
    assert np.array_equal(read(content), half.astype(np.float64))

    brain = [at for at in range(0x10000) if at & 0x7F80 != 0x7F80]
    raw = struct.pack(f"<{len(brain)}H", *brain)
    exact = struct.unpack(f"<{len(brain)}f", b"".join(struct.pack("<I", at << 16) for at in brain))
    content = by_hand(REQUEST, {"/input/tensor": ("BF16", [len(brain) // 4, 4], raw)})
    assert read(content).reshape(-1).tolist() == list(exact)


def read(content: bytes) -> np.ndarray:
    found = parsed(content).input.tensor
    assert found is not None
    return found


@pytest.mark.parametrize(("dtype", "width"), [("I64", "q"), ("I32", "i"), ("U8", "B")])
def test_whole_numbers_of_each_width_are_read(dtype: str, width: str) -> None:
    ids = (dtype, [3], struct.pack(f"<3{width}", 4, 0, 1))
    found = parsed(by_hand(REQUEST, {"/input/token_ids": ids})).input.token_ids
    assert found is not None
    assert (found.tolist(), found.dtype) == ([4, 0, 1], np.int64)


def test_numbers_are_read_where_they_lie_and_nowhere_else() -> None:
    content = body(REQUEST, TENSOR)
    found = read(content)
    assert np.shares_memory(found, np.frombuffer(content, np.uint8))
    assert not found.flags.writeable


@pytest.mark.parametrize("shift", range(1, 8))
def test_tensors_that_lie_askew_are_read_all_the_same(shift: int) -> None:
    mask = ("BOOL", [shift], b"\1" * shift)
    content = by_hand(REQUEST, {"/input/key_mask": mask, "/input/tensor": F32})
    found = read(content)
    assert found.tolist() == ROWS.tolist()
    assert found.flags.aligned


def test_names_are_json_pointers(client: TestClient, assert_problem: AssertProblem) -> None:
    names = {"/model/weights/tensors/a~1b~0c": ROWS, "/input/tensor": ROWS}
    problem = assert_problem(post(client, body(REQUEST, names)), "shape-mismatch")
    assert faults(problem) == [("/model/weights/tensors/a~1b~0c", "unknown_tensor")]


def test_list_on_the_way_is_entered(client: TestClient) -> None:
    edit = {"tensor": "blocks.0.attn.W_O", "where": {"head": [1]}, "op": "set"}
    request = {**REQUEST, "model": {**REQUEST["model"], "weights": {"edits": [edit]}}}
    value = np.random.default_rng(0).standard_normal((1, 2, 4))
    answer = post(client, body(request, {"/model/weights/edits/0/value": value, **TENSOR}))
    edit["value"] = value.tolist()
    request["input"] = {"tensor": ROWS.tolist()}
    assert answer.content == client.post("/v1/trace", json=request).content


def test_cache_goes_back_and_forth_as_it_came(client: TestClient) -> None:
    model = {"name": "letter-sort"}
    first = {"model": model, "input": {"text": "CAB"}}
    rest = {"model": model, "input": {"token_ids": [2, 1]}, "format": {"encoding": "base64"}}
    cache = client.post("/v1/decode", json=first).json()["cache"]
    packed = client.post("/v1/decode", json={**rest, "cache": cache}).json()

    before = post(client, body(first, {}), "/v1/decode", Accept=MEDIA).content
    kept = {name: x for name, x in load(before).items() if name.startswith("/cache/")}
    assert {name.rpartition(".")[2] for name in kept} == {"k", "v"}
    cached = answer_of(before)["cache"]
    left = {key: value for key, value in cached.items() if f"/cache/{key}" not in kept}
    request = body({**rest, "cache": left}, kept)
    after = post(client, request, "/v1/decode", Accept=MEDIA).content
    as_it_came = body({**rest, "cache": cached}, kept)
    assert post(client, as_it_came, "/v1/decode", Accept=MEDIA).content == after
    found = load(after)
    assert {name.rpartition("/")[2] for name in kept} < {name.rpartition("/")[2] for name in found}
    for name, values in found.items():
        assert values.tobytes() == base64.b64decode(_at(packed, name)["data"]), name


def answer_of(content: bytes) -> dict[str, Any]:
    """What an answer says beside its tensors."""
    length = int.from_bytes(content[:8], "little")
    told = json.loads(content[8 : 8 + length])["__metadata__"]["answer"]
    answer: dict[str, Any] = json.loads(told)
    return answer


def _at(answer: dict[str, Any], pointer: str) -> dict[str, Any]:
    here: Any = answer
    for part in map(unescaped, pointer.split("/")[1:]):
        here = here[int(part)] if isinstance(here, list) else here[part]
    found: dict[str, Any] = here
    return found


def test_what_an_answer_left_is_no_tensor_of_another_name(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    asked = {**REQUEST, "input": {"tensor": {"dtype": "float32", "entry": "/elsewhere"}}}
    sent = body(asked, {"/input/tensor": np.ones((2, 4), np.float32)})
    assert faults(assert_problem(post(client, sent), "invalid-request")) == [
        ("/input/tensor", "taken")
    ]


@pytest.mark.parametrize(
    ("tensors", "expected"),
    [
        ({"/input/tensor": np.array([[1, np.nan, 3, np.inf]])}, ["not_finite"] * 2),
        ({"/input/token_ids": np.array([0, -1, 2**53 + 1])}, ["out_of_range"] * 2),
        ({"/input/token_ids": np.array([0.0, 1.0])}, ["wrong_dtype"]),
        ({"/input/tensor": np.array([[1, 2, 3, 4]])}, ["wrong_dtype"]),
        ({"/input/tensor": np.ones((2, 4), np.bool_)}, ["wrong_dtype"]),
        ({"/input/tensor": np.ones(4)}, ["rank_mismatch"]),
        ({"/input/tensor": np.ones(())}, ["rank_mismatch"]),
        ({"/input/tensor": np.ones((0, 4))}, ["empty"]),
    ],
)
def test_fault_of_a_tensor_is_at_its_place(
    client: TestClient,
    assert_problem: AssertProblem,
    tensors: dict[str, np.ndarray],
    expected: list[str],
) -> None:
    problem = assert_problem(post(client, body(REQUEST, tensors)), "invalid-request")
    assert faults(problem) == [(*tensors, code) for code in expected]


@pytest.mark.parametrize(
    ("tensors", "code", "entry"),
    [
        ({"/input/tensor": np.array([[1.0, 2.0, 3.0, 1e39]])}, "overflow", "[0, 3]"),
        ({"/input/token_ids": np.array([[0, 1], [2, 5]])}, "out_of_vocabulary", "[1, 1]"),
    ],
)
def test_fault_that_is_found_later_names_the_entry_in_words(
    client: TestClient,
    assert_problem: AssertProblem,
    tensors: dict[str, np.ndarray],
    code: str,
    entry: str,
) -> None:
    problem = assert_problem(post(client, body(REQUEST, tensors)), "invalid-input")
    assert faults(problem) == [(*tensors, code)]
    assert f"Entry {entry}" in problem["errors"][0]["detail"]


def test_byte_of_a_mask_is_0_or_1(client: TestClient, assert_problem: AssertProblem) -> None:
    mask = ("BOOL", [2], b"\1\2")
    content = by_hand(REQUEST, {"/input/tensor": F32, "/input/key_mask": mask})
    problem = assert_problem(post(client, content), "invalid-request")
    assert faults(problem) == [("/input/key_mask", "out_of_range")]
