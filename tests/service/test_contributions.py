"""POST /v1/contributions: parts of a state and of a logit, and what cannot be split."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from near import near
from schemas.contribution_answers import ContributionsAnswer
from service.example_bodies import contributions as examples

Json = dict[str, Any]
AssertProblem = Callable[..., Json]
LETTERS: Json = {"model": {"name": "letter-sort"}, "input": {"text": "CABBAC"}}
TOY: Json = {"model": {"name": "eiffel-toy"}, "input": {"text": "the Eiffel tower"}}
COPIES: Json = {"model": {"name": "induction"}, "input": {"text": "QWERTYQWERT"}}
POST: Json = {"model": {"name": "letter-sort", "config": {"norm": {"placement": "post"}}},
              "input": {"text": "CABBAC"}}  # fmt: skip


def answer(client: TestClient, request: Json) -> Json:
    response = client.post("/v1/contributions", json=request)
    assert response.status_code == 200, response.text
    found: Json = response.json()
    return found


def trace(client: TestClient, request: Json, *stages: str) -> list[np.ndarray]:
    """Stages of the same run, by POST /v1/trace."""
    body = {**request, "select": list(stages), "dtype": "float64"}
    tensors = client.post("/v1/trace", json=body).json()["tensors"]
    return [np.array(tensors[name]["data"]) for name in stages]


def test_example_is_answered_as_shown(client: TestClient) -> None:
    found = answer(client, examples.REQUESTS["sources"]["value"])
    assert near(found, dict(examples.ANSWER))
    assert list(found) == list(examples.ANSWER)


@pytest.mark.parametrize("name", sorted(examples.REQUESTS))
def test_every_example_answers_as_its_schema_says(client: TestClient, name: str) -> None:
    found = answer(client, examples.REQUESTS[name]["value"])
    TypeAdapter(ContributionsAnswer).validate_python(found)
    for row in found["at"]:
        assert row["sum"]["holds"] is True


SPLITS = ("block", "sublayer", "head", "source", "neuron", "bias")


@pytest.mark.parametrize("by", SPLITS)
@pytest.mark.parametrize("request_of", [LETTERS, COPIES, TOY], ids=["letters", "copies", "toy"])
def test_parts_of_a_shipped_model_add_up_to_state_and_logit(
    client: TestClient, request_of: Json, by: str
) -> None:
    asked = {"by": by, "direction": {"token": 2, "minus": 1}, "positions": [0, -1]}
    found = answer(client, {**request_of, **asked, "vectors": True, "dtype": "float64"})
    state, logits = trace(client, request_of, found["of"], "logits")
    for row in found["at"]:
        vectors = [part["vector"] for part in row["parts"] if "vector" in part]
        assert np.allclose(np.sum(vectors, axis=0), state[row["position"]], rtol=0, atol=1e-12)
        total = sum(part["along"] for part in row["parts"])
        wanted = logits[row["position"], 2] - logits[row["position"], 1]
        assert abs(total - wanted) < 1e-11
        assert row["logit"]["holds"] is True
        assert abs(row["logit"]["value"] - wanted) < 1e-11
        shares = [part["share"] for part in row["parts"] if part["share"] is not None]
        assert sum(shares) == pytest.approx(1, abs=1e-12)


def test_parts_of_letters_are_what_a_trace_shows(client: TestClient) -> None:
    found = answer(client, {**LETTERS, "by": "sublayer", "vectors": True, "dtype": "float64"})
    (row,) = found["at"]
    names = [part["id"] for part in row["parts"]]
    assert names[:2] == ["embed", "pos_embed"]
    assert names[2:4] == ["blocks.0.attn_out", "blocks.0.ffn_out"]
    for part, values in zip(row["parts"], trace(client, LETTERS, *names), strict=True):
        assert part["vector"] == values[-1].tolist()
        assert part["norm"] == pytest.approx(float(np.linalg.norm(values[-1])), rel=1e-14)


def test_lens_ends_in_the_logits(client: TestClient) -> None:
    asked = {"norm_scale": "recomputed", "direction": {"token": "A"}, "dtype": "float64"}
    (row,) = answer(client, {**LETTERS, **asked})["at"]
    (logits,) = trace(client, LETTERS, "logits")
    last = row["lens"][-1]
    assert last["state"] == "blocks.2.resid_post"
    assert last["value"] == pytest.approx(logits[-1, 0], abs=1e-12)
    assert [one["token"] for one in last["top"]] == ["A", "C", "B"]
    assert sum(one["probability"] for one in last["top"]) == pytest.approx(1, abs=1e-12)
    assert sum(part["along"] for part in row["parts"]) == pytest.approx(last["value"], abs=1e-12)
    assert row["logit"] is None


def test_lens_of_a_post_norm_stack_has_states_and_no_parts(client: TestClient) -> None:
    (row,) = answer(client, {**POST, "norm_scale": "recomputed"})["at"]
    assert (row["parts"], row["sum"], row["state"]) == ([], None, None)
    (logits,) = trace(client, POST, "logits")
    assert row["lens"][-1]["top"][0]["logit"] == pytest.approx(float(logits[-1].max()), rel=1e-5)


def test_what_the_readout_of_a_post_norm_stack_reads_is_split(client: TestClient) -> None:
    asked = {"direction": {"token": "A"}, "by": "head", "dtype": "float64"}
    found = answer(client, {**POST, **asked})
    assert found["of"] == "blocks.2.ffn_sum"
    (row,) = found["at"]
    (logits,) = trace(client, POST, "logits")
    assert row["logit"]["sum"] == pytest.approx(logits[-1, 0], abs=1e-12)
    assert row["parts"][0]["id"] == "blocks.2.resid_mid"
    assert row["parts"][-1]["id"] == "blocks.2.norm2.bias"


def test_rest_is_one_part_and_nothing_is_lost(client: TestClient) -> None:
    whole = answer(client, {**LETTERS, "by": "neuron", "vectors": True})["at"][0]
    few = answer(client, {**LETTERS, "by": "neuron", "vectors": True, "top_k": 4})["at"][0]
    assert len(few["parts"]) == 5
    assert few["parts"][-1]["id"] == "rest"
    assert few["parts"][-1]["count"] == len(whole["parts"]) - 4
    largest = sorted((part["norm"] for part in whole["parts"]), reverse=True)[:4]
    assert [part["norm"] for part in few["parts"][:-1]] == largest
    for key in ("share", "projection"):
        totals = [sum(part[key] for part in row["parts"]) for row in (whole, few)]
        assert totals[0] == pytest.approx(totals[1], abs=1e-9)
    vectors = np.array([part["vector"] for part in few["parts"]])
    assert np.allclose(vectors.sum(axis=0), few["state"]["vector"], atol=1e-5)


def test_batch_and_positions_are_answered_one_by_one(client: TestClient) -> None:
    batch: Json = {"model": {"name": "letter-sort"}, "input": {"text": ["CABBAC", "BACCAB"]}}
    found = answer(client, {**batch, "positions": [1, -1]})
    places = [(row["batch"], row["position"]) for row in found["at"]]
    assert places == [(0, 1), (0, 5), (1, 1), (1, 5)]
    second = answer(client, {**batch, "positions": [-1], "batch": [1]})["at"]
    assert near(second, found["at"][3:])
    alone = answer(client, {"model": batch["model"], "input": {"text": "BACCAB"}})["at"]
    assert near(alone[0]["parts"], second[0]["parts"])


def test_state_of_zeros_has_no_shares(client: TestClient) -> None:
    (row,) = answer(client, {**TOY, "positions": [0], "of": "resid_pre"})["at"]
    assert row["state"]["norm"] == 0
    assert [part["share"] for part in row["parts"]] == [None]
    assert row["sum"] == {
        "max_abs": 0,
        "rel": None,
        "tolerance": row["sum"]["tolerance"],
        "holds": True,
    }


VECTOR = {"vector": [1.0] * 48}
RECOMPUTED = {"norm_scale": "recomputed"}
UPDATE: Json = {"of": "blocks.0.attn_out"}
REFUSED: list[tuple[Json, str, str]] = [
    ({**LETTERS, "of": "attn.z"}, "/of", "not_a_sum"),
    ({**LETTERS, "of": "resid_post"}, "/of", "several_stages"),
    ({**LETTERS, "of": "blocks.0.attn.z"}, "/of", "not_a_sum"),
    ({**LETTERS, "of": "blocks.9.resid_post"}, "/of", "unknown_stage"),
    ({**LETTERS, "of": "blocks.*.resid_post"}, "/of", "several_stages"),
    ({**LETTERS, "of": "blocks.0.attn_sum"}, "/of", "stage_absent"),
    ({**POST, "of": "blocks.1.resid_post"}, "/of", "sum_does_not_hold"),
    ({**POST, **UPDATE, "direction": {"token": "A"}}, "/direction", "not_read_out"),
    ({**LETTERS, "of": "logits"}, "/direction", "direction_needed"),
    ({**LETTERS, "positions": [0, 6]}, "/positions/1", "index_out_of_range"),
    ({**LETTERS, "batch": [0]}, "/batch", "no_batch"),
    ({**LETTERS, "direction": {"token": "D"}}, "/direction/token", "not_one_token"),
    ({**LETTERS, "direction": {"token": 3}}, "/direction/token", "out_of_vocabulary"),
    ({**LETTERS, "direction": {"token": "A", "minus": "AB"}}, "/direction/minus", "not_one_token"),
    ({**LETTERS, "direction": {"vector": [1.0]}}, "/direction/vector", "wrong_length"),
    ({**LETTERS, **RECOMPUTED, "by": "head"}, "/by", "not_linear"),
    ({**LETTERS, **RECOMPUTED, **UPDATE}, "/of", "not_a_state"),
    ({**LETTERS, **RECOMPUTED, "direction": VECTOR}, "/direction/vector", "not_read_out"),
]  # fmt: skip


@pytest.mark.parametrize(("request_of", "pointer", "code"), REFUSED)
def test_what_cannot_be_answered_is_told_where(
    client: TestClient,
    assert_problem: AssertProblem,
    request_of: Json,
    pointer: str,
    code: str,
) -> None:
    body = assert_problem(client.post("/v1/contributions", json=request_of), "unanswerable")
    assert [(fault["pointer"], fault["code"]) for fault in body["errors"]] == [(pointer, code)]


def test_all_faults_are_told_at_once(client: TestClient, assert_problem: AssertProblem) -> None:
    wrong = {"positions": [9], "batch": [0], "direction": {"vector": [1.0]}}
    body = assert_problem(
        client.post("/v1/contributions", json={**LETTERS, **wrong}), "unanswerable"
    )
    pointers = [fault["pointer"] for fault in body["errors"]]
    assert pointers == ["/positions/0", "/batch", "/direction/vector"]


def test_refusal_of_a_post_norm_state_names_the_sums_that_hold(client: TestClient) -> None:
    body = client.post("/v1/contributions", json={**POST, "of": "blocks.1.resid_post"}).json()
    (fault,) = body["errors"]
    assert fault["expected"] == [
        "blocks.1.attn_sum = blocks.1.resid_pre + blocks.1.attn_out",
        "blocks.1.ffn_sum = blocks.1.resid_mid + blocks.1.ffn_out",
    ]
    assert "norm of a sum" in fault["detail"]


def test_head_before_the_readout_is_no_linear_way(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    model: Json = {
        "config": {"d_model": 8, "attention": {"n_heads": 2}, "vocab": 5, "mlm_head": True}
    }
    request: Json = {"model": model, "input": {"token_ids": [1, 2]}, "direction": {"token": 1}}
    body = assert_problem(client.post("/v1/contributions", json=request), "unanswerable")
    assert body["errors"][0]["code"] == "not_linear"
    (row,) = answer(client, {**request, "norm_scale": "recomputed"})["at"]
    assert row["lens"][-1]["value"] is not None


def test_too_many_numbers_are_refused_before_the_run(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    model: Json = {"preset": "gpt2", "config": {"n_layers": 12}}
    ids = {"token_ids": [[1] * 512]}
    request: Json = {"model": model, "input": ids, "by": "neuron", "vectors": True}
    body = assert_problem(client.post("/v1/contributions", json=request), "beyond-limit")
    assert body["limit"]["name"] == "answer_elements"
    assert body["estimate"]["parts"][0]["stage"] == "vectors"
    assert "top_k" in body["advice"]["text"]


def test_same_request_gets_the_same_bytes(client: TestClient) -> None:
    request = examples.REQUESTS["heads"]["value"]
    contents = {client.post("/v1/contributions", json=request).content for _ in range(2)}
    assert len(contents) == 1


@pytest.mark.parametrize("more", [{"by": "neuron"}, {"by": "head", "top_k": 2}, RECOMPUTED])
def test_what_overflows_is_null_and_not_judged(client: TestClient, more: Json) -> None:
    edits = [
        {"tensor": f"blocks.0.{name}", "op": "scale", "value": 1e38}
        for name in ("ffn.W_out", "attn.W_O")
    ]
    model = {"name": "letter-sort", "weights": {"edits": edits}}
    request = {"model": model, "input": LETTERS["input"], "direction": {"token": "A"}}
    found = answer(client, {**request, **more})
    TypeAdapter(ContributionsAnswer).validate_python(found)
    (row,) = found["at"]
    assert (row["state"]["norm"], row["sum"]["max_abs"], row["sum"]["holds"]) == (None, None, None)


def test_huge_weights_are_judged_as_far_as_they_are_finite(client: TestClient) -> None:
    edit = {"tensor": "blocks.0.ffn.W_out", "op": "scale", "value": 1e30}
    model = {"name": "letter-sort", "weights": {"edits": [edit]}}
    (row,) = answer(client, {"model": model, "input": LETTERS["input"], "by": "neuron"})["at"]
    assert row["state"]["norm"] > 1e29
    assert row["sum"]["holds"] is True


def test_encoder_and_decoder_are_split_each_by_itself(client: TestClient) -> None:
    encoder: Json = {"attention": {"n_heads": 4, "bias": True}}
    model: Json = {"preset": "llama-tiny", "config": {"encoder": encoder}}
    request: Json = {
        "model": model,
        "input": {"token_ids": [1, 2], "memory": {"token_ids": [3, 4, 5]}},
    }
    own = answer(client, {**request, "by": "source"})["at"][0]
    across = [part["source"] for part in own["parts"] if "cross.head.0" in part["id"]]
    assert across == [0, 1, 2] * 2
    found = answer(client, {**request, "of": "encoder.blocks.0.resid_post", "positions": [2]})
    assert found["at"][0]["sum"]["holds"] is True
    assert found["at"][0]["parts"][0]["id"] == "encoder.embed"
    body = client.post(
        "/v1/contributions",
        json={**request, "of": "encoder.blocks.0.resid_post", "direction": {"token": 1}},
    ).json()
    assert body["errors"][0]["code"] == "not_read_out"


@pytest.mark.parametrize("of", ["attn.z", "blocks.2.attn.z"])
def test_stage_that_is_no_sum_is_told_those_that_are_here(
    client: TestClient, assert_problem: Callable[..., dict[str, Any]], of: str
) -> None:
    body = {"model": {"name": "letter-sort"}, "input": {"text": "CABBAC"}, "of": of}
    (fault,) = assert_problem(client.post("/v1/contributions", json=body), "unanswerable")["errors"]
    assert (fault["pointer"], fault["code"]) == ("/of", "not_a_sum")
    expected = ["resid_pre", "resid_mid", "resid_post", "attn_out", "ffn_out"]
    assert fault["expected"] == expected
