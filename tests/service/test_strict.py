"""Bodies at the door: base64 in the place of lists, doubled keys, and counts before any work."""

from base64 import b64encode
from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
import pytest
from starlette.testclient import TestClient

AssertProblem = Callable[..., dict[str, Any]]
JSON = {"Content-Type": "application/json"}


def packed(values: np.ndarray) -> dict[str, Any]:
    """An array as a request packs it."""
    return {
        "dtype": values.dtype.name,
        "shape": list(values.shape),
        "data": b64encode(values.tobytes()).decode(),
    }


CONFIG = {"d_model": 4, "attention": {"n_heads": 2}, "position": {"kind": "sinusoidal"}}
GENERATOR = np.random.default_rng(3)
TENSOR = GENERATOR.standard_normal((2, 3, 4))
W_O = GENERATOR.standard_normal((2, 2, 4)).astype(np.float32)
ROW = GENERATOR.standard_normal(4)
POSITIONS = np.array([0, 4, 9])
KEYS = np.array([[True, True, False], [True, True, True]])
PAIRS = np.tril(np.ones((3, 3), np.bool_))


def request(form: Callable[[np.ndarray], object]) -> dict[str, Any]:
    """A request with every tensor that a request may have, each in a form."""
    edit = {"tensor": "blocks.0.attn.W_Q", "where": {"head": [0], "d_head": [1]}, "op": "add"}
    return {
        "model": {
            "config": CONFIG,
            "weights": {
                "tensors": {"blocks.0.attn.W_O": form(W_O)},
                "edits": [{**edit, "value": form(ROW.reshape(1, 4, 1))}],
            },
        },
        "input": {
            "tensor": form(TENSOR),
            "position_ids": form(POSITIONS),
            "key_mask": form(KEYS),
            "attention_mask": form(PAIRS),
        },
        "dtype": "float64",
    }


def test_every_tensor_may_be_base64_and_the_answer_is_the_same(client: TestClient) -> None:
    lists = client.post("/v1/trace", json=request(np.ndarray.tolist))
    bytes_ = client.post("/v1/trace", json=request(packed))
    assert lists.status_code == 200
    assert lists.content == bytes_.content


def test_token_ids_may_be_base64(client: TestClient) -> None:
    ids = np.array([[2, 0, 1], [1, 1, 0]], np.int32)
    answers = [
        client.post("/v1/trace", json={"model": {"name": "letter-sort"}, "input": {"token_ids": x}})
        for x in (ids.tolist(), packed(ids), packed(ids.astype(np.int64)))
    ]
    assert answers[0].status_code == 200
    assert len({answer.content for answer in answers}) == 1


@pytest.mark.parametrize(
    "place",
    [
        ("input", "tensor"),
        ("input", "position_ids"),
        ("input", "key_mask"),
        ("input", "attention_mask"),
        ("model", "weights", "tensors", "blocks.0.attn.W_O"),
        ("model", "weights", "edits", 0, "value"),
    ],
    ids=lambda place: str(place[-1]),
)
def test_fault_of_base64_is_pointed_at_in_every_place(
    client: TestClient, assert_problem: AssertProblem, place: tuple[str | int, ...]
) -> None:
    body = request(packed)
    here: Any = body
    for part in place:
        here = here[part]
    here["data"] = here["data"][:-4]
    problem = assert_problem(client.post("/v1/trace", json=body), "invalid-request")
    at = "/" + "/".join(map(str, (*place, "data")))
    assert [(f["pointer"], f["code"]) for f in problem["errors"]] == [(at, "wrong_length")]


def test_float64_that_overflows_float32_is_pointed_at(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    body = request(packed) | {"dtype": "float32"}
    body["input"]["tensor"] = packed(np.array([[[1.0, 2.0, 3.0, 1e39]]]))
    del body["input"]["position_ids"], body["input"]["key_mask"], body["input"]["attention_mask"]
    problem = assert_problem(client.post("/v1/trace", json=body), "invalid-input")
    assert [fault["code"] for fault in problem["errors"]] == ["overflow"]
    assert problem["errors"][0]["pointer"] == "/input/tensor/data"


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b'{"model": {"name": "eiffel-toy", "name": "letter-sort"}}', "near line 1, column 4"),
        (b'{"a": {"b": [1, {"c": 1,\n "d": 2, "c": 3}]}}', "near line 2, column 1"),
        (b'{"caf\\u00e9": 1, "caf\xc3\xa9": 2}', "near line 1, column 2"),
    ],
)
def test_key_given_twice_is_refused_and_not_repeated(
    client: TestClient, assert_problem: AssertProblem, body: bytes, place: str
) -> None:
    problem = assert_problem(client.post("/v1/trace", content=body, headers=JSON), "malformed-json")
    assert "twice" in problem["detail"]
    assert place in problem["detail"]


def test_same_key_in_two_objects_is_no_fault(client: TestClient) -> None:
    text = b'{"model": {"name": "eiffel-toy"}, "input": {"text": "the"}, "select": [{"name": "X"}]}'
    assert client.post("/v1/trace", content=text, headers=JSON).status_code == 200


@pytest.mark.parametrize(
    ("limit", "body"),
    [
        ("body_lists", b'{"input": {"tensor": [%s[1]]}}' % (b"[1]," * 60)),
        ("body_keys", b"{%s}" % b",".join(b'"k%d":1' % at for at in range(60))),
        ("body_values", b'{"input": {"tensor": [[%s1]]}}' % (b"1," * 60)),
    ],
)
def test_what_a_body_holds_is_counted_before_it_is_read(
    make_client: Callable[..., TestClient], assert_problem: AssertProblem, limit: str, body: bytes
) -> None:
    response = make_client(**{limit: 50}).post("/v1/trace", content=body, headers=JSON)
    problem = assert_problem(response, "beyond-limit")
    assert problem["limit"]["name"] == limit
    assert 50 < problem["limit"]["got"] < 70
    assert "base64" in problem["advice"]["text"]


@pytest.mark.parametrize(
    ("place", "pointer"),
    [((), ""), (("model",), "/model"), (("model", "config", "ffn"), "/model/config/ffn")],
)
def test_flood_of_unknown_keys_is_one_fault(
    client: TestClient, assert_problem: AssertProblem, place: tuple[str, ...], pointer: str
) -> None:
    flood: dict[str, Any] = {f"secret{at}": at for at in range(1000)}
    for part in reversed(place):
        flood = {part: flood}
    response = client.post("/v1/trace", content=orjson.dumps(flood), headers=JSON)
    problem = assert_problem(response, "invalid-request")
    assert (pointer, "too_many_keys") in [(f["pointer"], f["code"]) for f in problem["errors"]]
    assert "secret" not in response.text
