"""POST /v1/decode: the cache travels, and what comes back with it equals one run over all rows."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from compute.checkpoints.tokenizer_rules import LONGEST_TOKEN
from service.example_bodies import decode as bodies

AssertProblem = Callable[..., dict[str, Any]]
Json = dict[str, Any]

SMALL: Json = {
    "d_model": 8,
    "n_layers": 2,
    "attention": {"n_heads": 4, "n_kv_heads": 2, "d_head": 4, "mask": "causal", "window": 3},
    "ffn": {"d_ff": 12},
    "position": {"kind": "rope"},
    "vocab": 11,
}
MODEL: Json = {"config": SMALL, "weights": {"seed": 3}}
IDS = [3, 7, 1, 9, 4, 2]
FORMS = ["base64", "nested"]
SELECT = ["resid_post", "attn.pattern", "attn.k", "logits"]


def decoded(client: TestClient, **body: object) -> Json:
    response = client.post("/v1/decode", json={"model": MODEL, "dtype": "float64", **body})
    assert response.status_code == 200, response.text
    answer: Json = response.json()
    return answer


def traced(client: TestClient, **body: object) -> Json:
    request = {"model": MODEL, "dtype": "float64", "identities": False, **body}
    tensors: Json = client.post("/v1/trace", json=request).json()["tensors"]
    return {name: np.array(tensor["data"], float) for name, tensor in tensors.items()}


def close(found: object, expected: object) -> None:
    np.testing.assert_allclose(np.array(found, float), expected, rtol=0, atol=1e-12)


def test_answer_that_is_shown_is_the_answer_to_the_first_request(client: TestClient) -> None:
    answer = client.post("/v1/decode", json=bodies.DECODE["prefix"]["value"]).json()
    shown = deepcopy(dict(bodies.ANSWER))
    for one in (answer, shown):
        for top in one["steps"][0]["top"]:
            top["probability"] = round(top["probability"], 6)
    assert answer == shown


@pytest.mark.parametrize("form", FORMS)
def test_token_by_token_over_http_is_one_run(client: TestClient, form: str) -> None:
    whole = traced(client, input={"token_ids": IDS}, select=SELECT)
    cache = None
    for at, token_id in enumerate(IDS):
        body = {"input": {"token_ids": [token_id]}, "select": SELECT, "cache_as": form}
        answer = decoded(client, cache=cache, **body)
        (step,) = answer["steps"]
        cache = answer["cache"]
        assert (step["rows"], step["token_id"], step["position"]) == (1, token_id, at)
        tensors = {name: np.array(t["data"], float) for name, t in step["tensors"].items()}
        close(step["logits"], whole["logits"][at])
        for layer in (0, 1):
            block = f"blocks.{layer}."
            close(tensors[block + "resid_post"], whole[block + "resid_post"][at : at + 1])
            pattern = whole[block + "attn.pattern"][:, at : at + 1, : at + 1]
            close(tensors[block + "attn.pattern"], pattern)
            close(tensors[block + "attn.k"], whole[block + "attn.k"][:, : at + 1])
    assert cache["position_ids"] == list(range(6))


def test_both_forms_of_a_cache_hold_the_same_bits(client: TestClient) -> None:
    body = {"input": {"token_ids": IDS}, "select": []}
    caches = [decoded(client, **body, cache_as=form)["cache"] for form in FORMS]
    answers = [
        decoded(client, input={"token_ids": [5]}, cache=cache, cache_as="nested")
        for cache in caches
    ]
    assert answers[0] == answers[1]


def test_steps_are_the_likeliest_tokens_and_their_cache_goes_on(client: TestClient) -> None:
    answer = decoded(client, input={"token_ids": IDS}, steps=3, select=["resid_post"])
    assert [step["rows"] for step in answer["steps"]] == [6, 1, 1, 1]
    written = [step["token_id"] for step in answer["steps"][1:]]
    assert written == [step["top"][0]["token_id"] for step in answer["steps"][:-1]]
    whole = traced(client, input={"token_ids": IDS + written}, select=["resid_post", "logits"])
    for at, step in enumerate(answer["steps"]):
        close(step["logits"], whole["logits"][5 + at])
        last = step["tensors"]["blocks.1.resid_post"]["data"][-1]
        close(last, whole["blocks.1.resid_post"][5 + at])
    after = decoded(client, input={"token_ids": [1]}, cache=answer["cache"])
    again = traced(client, input={"token_ids": [*IDS, *written, 1]}, select=["logits"])
    close(after["steps"][0]["logits"], again["logits"][-1])


def test_left_padded_texts_go_on_each_from_its_own_position(client: TestClient) -> None:
    model = {"name": "induction"}
    texts = ["GLASSGLA", "NONO"]
    body = {"model": model, "input": {"text": texts}, "steps": 2, "select": [], "dtype": "float64"}
    together = decoded(client, **body)
    for row, text in enumerate(texts):
        alone = decoded(client, **{**body, "input": {"text": text}})
        for one, several in zip(alone["steps"], together["steps"], strict=True):
            assert several["token"][row] == one["token"]
            assert several["position"][row] == one["position"]
            close(several["logits"][row], one["logits"])
            assert several["top"][row][0]["token_id"] == one["top"][0]["token_id"]
    assert together["cache"]["key_mask"][1] == [False] * 4 + [True] * 6


def test_top_tokens_are_the_softmax_of_the_logits(client: TestClient) -> None:
    (step,) = decoded(client, input={"token_ids": IDS}, top=100)["steps"]
    logits = np.array(step["logits"])
    shares = np.exp(logits) / np.exp(logits).sum()
    ids = [top["token_id"] for top in step["top"]]
    assert ids == np.argsort(-logits, kind="stable").tolist()
    close([top["probability"] for top in step["top"]], shares[ids])
    assert [top["logit"] for top in step["top"]] == logits[ids].tolist()


def test_rows_of_numbers_run_but_nothing_follows_them(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    body: Json = {"model": MODEL, "input": {"tensor": [[0.5] * 8] * 2}}
    (step,) = decoded(client, **body)["steps"]
    assert (step["token_id"], step["token"], step["position"]) == (None, None, 1)
    problem = assert_problem(client.post("/v1/decode", json={**body, "steps": 1}), "unanswerable")
    assert problem["errors"][0]["pointer"] == "/steps"


def test_what_is_not_asked_for_is_null(client: TestClient) -> None:
    answer = decoded(client, input={"token_ids": IDS}, logits=False, cache_as="none", select=[])
    assert (answer["cache"], answer["steps"][0]["logits"]) == (None, None)
    assert answer["steps"][0]["tensors"] == {}
    blind = {**MODEL, "config": {**SMALL, "readout": False}}
    (step,) = decoded(client, model=blind, input={"token_ids": IDS})["steps"]
    assert (step["top"], step["logits"]) == (None, None)


def test_default_shows_where_a_row_looks_and_what_becomes_of_it(client: TestClient) -> None:
    (step,) = decoded(client, input={"token_ids": [1]})["steps"]
    shown = ["attn.pattern", "attn_out", "ffn_out", "resid_post"]
    assert list(step["tensors"]) == [f"blocks.{layer}.{name}" for layer in (0, 1) for name in shown]
    alone = {**SMALL, "attention": {"kind": "none"}, "position": {"kind": "none"}}
    answer = decoded(client, model={"config": alone}, input={"token_ids": [1]})
    assert list(answer["steps"][0]["tensors"])[:2] == ["blocks.0.ffn_out", "blocks.0.resid_post"]
    assert answer["cache"].keys() == {"digest", "dtype", "position_ids", "key_mask"}


def test_dynamic_scaling_beyond_its_length_says_that_it_is_not_exact(client: TestClient) -> None:
    scaling = {"kind": "dynamic", "factor": 2, "original_positions": 7}
    model = {"config": {**SMALL, "position": {"kind": "rope", "scaling": scaling}}}
    within = decoded(client, model=model, input={"token_ids": IDS}, steps=1)
    beyond = decoded(client, model=model, input={"token_ids": IDS}, steps=2)
    assert (within["exact"], within["reason"]) == (True, None)
    assert beyond["exact"] is False
    assert beyond["reason"].startswith("Dynamic NTK scaling: at 8 positions")


@pytest.fixture
def cache(client: TestClient) -> Json:
    answer = decoded(client, input={"token_ids": IDS}, select=[], cache_as="nested")
    found: Json = answer["cache"]
    return found


def refused(client: TestClient, assert_problem: AssertProblem, **body: object) -> list[Json]:
    request = {"model": MODEL, "dtype": "float64", "input": {"token_ids": [1]}, **body}
    found: list[Json] = assert_problem(client.post("/v1/decode", json=request), "unanswerable")[
        "errors"
    ]
    return found


def test_every_misfit_of_a_cache_is_told_at_once(
    client: TestClient, assert_problem: AssertProblem, cache: Json
) -> None:
    cache["blocks.0.attn.k"] = cache["blocks.0.attn.k"][:1]
    cache["blocks.7.attn.k"] = cache.pop("blocks.1.attn.v")
    cache["key_mask"] = [True] * 5
    faults = refused(client, assert_problem, cache=cache)
    assert {(fault["pointer"], fault["code"]) for fault in faults} == {
        ("/cache/blocks.1.attn.v", "missing"),
        ("/cache/blocks.7.attn.k", "unknown_key"),
        ("/cache/key_mask", "shape_mismatch"),
        ("/cache/blocks.0.attn.k", "shape_mismatch"),
    }


def test_ids_say_how_many_rows_there_are(
    client: TestClient, assert_problem: AssertProblem, cache: Json
) -> None:
    cache["position_ids"].append(6)
    faults = refused(client, assert_problem, cache=cache)
    assert [fault["expected"][-2] for fault in faults] == [7] * 4
    assert [fault["got"][-2] for fault in faults] == [6] * 4


def test_a_batch_needs_a_cache_of_a_batch(
    client: TestClient, assert_problem: AssertProblem, cache: Json
) -> None:
    faults = refused(client, assert_problem, cache=cache, input={"token_ids": [[1], [2]]})
    assert len(faults) == 4
    assert faults[0]["expected"] == [2, 2, 6, 4]


def test_a_cache_of_another_model_is_refused(
    client: TestClient, assert_problem: AssertProblem, cache: Json
) -> None:
    other = {**MODEL, "weights": {"seed": 4}}
    (fault,) = refused(client, assert_problem, cache=cache, model=other)
    assert (fault["pointer"], fault["code"]) == ("/cache/digest", "other_model")


def test_a_cache_of_another_dtype_is_refused(
    client: TestClient, assert_problem: AssertProblem, cache: Json
) -> None:
    (fault,) = refused(client, assert_problem, cache=cache, dtype="float32")
    assert (fault["pointer"], fault["code"]) == ("/cache/dtype", "other_dtype")


def test_a_model_that_sees_later_rows_is_refused(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    (fault,) = refused(client, assert_problem, model={"name": "eiffel-toy"})
    assert (fault["pointer"], fault["code"]) == ("/model", "not_causal")


def test_numbers_that_are_not_finite_are_refused(
    client: TestClient, assert_problem: AssertProblem, cache: Json
) -> None:
    cache["blocks.0.attn.k"][0][0][0] = None
    request = {"model": MODEL, "dtype": "float64", "input": {"token_ids": [1]}, "cache": cache}
    problem = assert_problem(client.post("/v1/decode", json=request), "invalid-request")
    assert problem["errors"][0]["pointer"] == "/cache/blocks.0.attn.k/0/0/0"


def test_a_slice_has_to_fit_the_rows_that_follow_too(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    request: Json = {
        "model": MODEL,
        "input": {"token_ids": IDS},
        "select": [{"name": "resid_post", "position": [2]}],
    }
    assert client.post("/v1/decode", json=request).status_code == 200
    problem = assert_problem(
        client.post("/v1/decode", json={**request, "steps": 1}), "invalid-selection"
    )
    assert problem["errors"][0]["pointer"] == "/select/0/position/0"
    assert "after the first runs one row" in problem["errors"][0]["detail"]


def test_rows_of_cache_input_and_steps_are_limited_together(
    make_client: Callable[..., TestClient], assert_problem: AssertProblem, cache: Json
) -> None:
    client = make_client(positions=8)
    body: Json = {"model": MODEL, "dtype": "float64", "input": {"token_ids": [1]}, "cache": cache}
    assert client.post("/v1/decode", json={**body, "steps": 1}).status_code == 200
    problem = assert_problem(client.post("/v1/decode", json={**body, "steps": 2}), "beyond-limit")
    assert problem["limit"] == {"name": "positions", "value": 8, "got": 9}
    assert problem["errors"][0]["pointer"] == "/steps"
    client = make_client(positions=6)
    problem = assert_problem(client.post("/v1/decode", json=body), "beyond-limit")
    assert problem["errors"][0]["pointer"] == "/cache/position_ids"


def test_the_answer_is_counted_with_every_step_and_the_cache(
    make_client: Callable[..., TestClient], assert_problem: AssertProblem
) -> None:
    body: Json = {
        "model": MODEL,
        "input": {"token_ids": IDS},
        "steps": 4,
        "select": ["Z"],
        "top": 1,
    }
    states, logits, top, cached = 2 * 8 * (6 + 4), 5 * 11, 5 * 8, 2 * 2 * 2 * 4 * 10
    elements = states + logits + top + cached
    client = make_client(answer_elements=elements)
    assert client.post("/v1/decode", json=body).json()["cost"]["elements"] == elements
    client = make_client(answer_elements=elements - 1)
    problem = assert_problem(client.post("/v1/decode", json=body), "beyond-limit")
    parts = {part["stage"]: part["elements"] for part in problem["estimate"]["parts"]}
    assert (parts["cache"], parts["logits"], parts["top"]) == (cached, logits, top)
    assert "fewer steps" in problem["advice"]["text"]


def test_the_texts_of_many_tokens_are_limited(
    make_client: Callable[..., TestClient], assert_problem: AssertProblem
) -> None:
    body = {"model": {"name": "induction"}, "input": {"text": "NO"}, "steps": 200, "select": []}
    client = make_client(answer_elements=1 << 16)
    problem = assert_problem(client.post("/v1/decode", json=body), "beyond-limit")
    assert problem["limit"]["got"] == 201 * 6 * LONGEST_TOKEN
    assert "fewer steps" in problem["detail"]


def test_an_encoder_is_read_at_each_step_as_in_one_run(client: TestClient) -> None:
    config = {**SMALL, "cross_attention": True, "encoder": {"attention": {"n_heads": 2}}}
    model = {"config": config}
    memory = {"token_ids": [1, 2, 3]}
    cut = {"token_ids": IDS[:4], "memory": memory}
    answer = decoded(client, model=model, input=cut, select=["cross.z"])
    after = {"token_ids": IDS[4:], "memory": memory}
    (step,) = decoded(client, model=model, input=after, cache=answer["cache"])["steps"]
    whole = traced(
        client, model=model, input={"token_ids": IDS, "memory": memory}, select=["logits"]
    )
    close(step["logits"], whole["logits"][-1])
