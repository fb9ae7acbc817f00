"""POST /v1/equivariance, from bytes to bytes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from schemas.equivariance_answers import EquivarianceAnswer
from service.example_bodies import equivariance as bodies

AssertProblem = Callable[..., dict[str, Any]]

TOY: dict[str, Any] = {"model": {"name": "eiffel-toy"}, "input": {"text": "the Eiffel tower"}}
LETTERS: dict[str, Any] = {"model": {"name": "letter-sort"}, "input": {"text": "CABBAC"}}
COPY: dict[str, Any] = {"model": {"name": "induction"}, "input": {"text": "QWERTYQWERT"}}


def asked(client: TestClient, body: dict[str, Any], **given: object) -> Any:  # noqa: ANN401
    response = client.post("/v1/equivariance", json={**body, **given})
    assert response.status_code == 200, response.text
    TypeAdapter(EquivarianceAnswer).validate_json(response.content, strict=True)
    return response.json()


def cases(found: Any) -> dict[str, Any]:  # noqa: ANN401 - plain JSON
    return {case["case"]: case for case in found["cases"]}


@pytest.mark.parametrize("name", bodies.REQUESTS)
def test_an_example_is_answered_as_described(client: TestClient, name: str) -> None:
    asked(client, bodies.REQUESTS[name]["value"])


def test_the_answer_that_is_shown_is_the_answer(client: TestClient) -> None:
    found = asked(client, bodies.REQUESTS["causal"]["value"])
    for told, case in zip(bodies.ANSWER["cases"], found["cases"], strict=True):
        for one, other in zip(told["stages"], case["stages"], strict=True):
            assert other["by_position"] == pytest.approx(one["by_position"], abs=1e-15)
            assert other["permutes"] == one["permutes"]
    rest = {key: value for key, value in bodies.ANSWER.items() if key != "cases"}
    assert {key: found[key] for key in rest} == rest


@pytest.mark.parametrize(("body", "kind"), [(LETTERS, "learned"), (COPY, "rope")])
def test_a_trained_model_permutes_without_positions_and_mask_alone(
    client: TestClient, body: dict[str, Any], kind: str
) -> None:
    found = asked(client, body, select=["*"])
    assert found["has"] == {"positions": kind, "mask": True}
    by_case = cases(found)
    assert {name: case["permutes"] for name, case in by_case.items()} == {
        "as_it_is": False,
        "without_positions": False,
        "without_mask": False,
        "without_both": True,
    }
    assert max(stage["rel"] for stage in by_case["without_both"]["stages"]) <= 1e-12
    for name in ("as_it_is", "without_positions", "without_mask"):
        case = by_case[name]
        failing = [stage["name"] for stage in case["stages"] if not stage["permutes"]]
        assert case["first"]["stage"] == failing[0]
        assert case["first"]["positions"] != []
    assert by_case["without_positions"]["first"]["stage"] == "blocks.0.attn.scores"
    first = {"learned": "pos_embed", "rope": "blocks.0.attn.q_rot"}[kind]
    assert by_case["without_mask"]["first"]["stage"] == first


@pytest.mark.parametrize("name", ["attn.pattern", "attn_out", "resid_post"])
def test_differences_are_those_of_two_traces(client: TestClient, name: str) -> None:
    order = [4, 1, 0, 5, 2, 3]
    found = asked(client, LETTERS, permutation=order, select=[name])
    ids = found["input"]["token_ids"]
    full = f"blocks.1.{name}"
    one, other = (
        np.array(
            client.post(
                "/v1/trace",
                json={
                    "model": LETTERS["model"],
                    "input": {"token_ids": tokens},
                    "select": [full],
                    "dtype": "float64",
                },
            ).json()["tensors"][full]["data"]
        )
        for tokens in (ids, [ids[i] for i in order])
    )
    expected = one[:, order][:, :, order] if name == "attn.pattern" else one[order]
    apart = np.abs(expected - other)
    by_row = apart.max(axis=(0, 2)) if name == "attn.pattern" else apart.max(axis=1)
    (stage,) = [x for x in cases(found)["as_it_is"]["stages"] if x["name"] == full]
    assert stage["by_position"] == pytest.approx(list(by_row), abs=1e-13)
    assert stage["max_abs"] == pytest.approx(apart.max(), abs=1e-13)
    assert stage["rel"] == pytest.approx(apart.max() / np.abs(one).max(), abs=1e-13)
    assert stage["worst_position"] == int(by_row.argmax())


def test_default_stages_are_those_told(client: TestClient) -> None:
    names = [stage["name"] for stage in asked(client, TOY)["cases"][0]["stages"]]
    blocks = ("resid_pre", "attn.pattern", "attn_out", "resid_post")
    assert names == [*(f"blocks.0.{name}" for name in blocks), "logits"]


def test_default_moves_every_row(client: TestClient) -> None:
    assert asked(client, LETTERS)["permutation"] == [1, 2, 3, 4, 5, 0]


def test_float32_has_a_tolerance_of_its_own(client: TestClient) -> None:
    found = asked(client, LETTERS, dtype="float32")
    assert found["tolerance"] == 5e-4
    assert cases(found)["without_both"]["permutes"]
    assert not cases(found)["as_it_is"]["permutes"]


def test_a_case_without_the_selected_stages_says_neither(client: TestClient) -> None:
    found = cases(asked(client, COPY, select=["attn.q_rot"]))
    assert found["without_positions"]["stages"] == []
    assert found["without_positions"]["permutes"] is None
    assert found["as_it_is"]["permutes"] is False


def test_a_batch_of_texts_with_padding_is_permuted_row_by_row(client: TestClient) -> None:
    body = {"model": {"name": "letter-sort"}, "input": {"text": ["CABBAC", "BA"]}}
    found = asked(client, body)
    assert found["input"]["batch"] == 2
    assert cases(found)["without_both"]["permutes"]


def test_an_encoder_is_left_as_it_is(client: TestClient) -> None:
    heads = {"attention": {"n_heads": 2}, "position": {"kind": "sinusoidal"}}
    body = {
        "model": {"config": {"d_model": 8, "vocab": 12, "encoder": heads, **heads}},
        "input": {"token_ids": [1, 7, 2], "memory": {"token_ids": [4, 9, 9, 5]}},
    }
    found = cases(asked(client, body, select=["*"]))
    theirs = [x for x in found["as_it_is"]["stages"] if x["name"].startswith("encoder.")]
    assert theirs
    assert {(x["max_abs"], x["by_position"] is None) for x in theirs} == {(0.0, True)}
    assert found["without_both"]["permutes"]
    assert not found["as_it_is"]["permutes"]


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1], [1, 2, 3], [0, 1, 2, 3], [0, 1, 1 << 53]])
def test_what_is_no_permutation_of_the_rows_is_refused(
    client: TestClient, assert_problem: AssertProblem, order: list[int]
) -> None:
    response = client.post("/v1/equivariance", json={**TOY, "permutation": order})
    found = assert_problem(response, "unanswerable")
    faults = [(fault["pointer"], fault["code"]) for fault in found["errors"]]
    assert faults == [("/permutation", "not_a_permutation")]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("nobody", "unknown_stage"),
        ("blocks.0.attn.q_rot", "stage_absent"),
        ("attn.source_out", "position_needed"),
    ],
)
def test_a_stage_that_cannot_be_compared_is_told(
    client: TestClient, assert_problem: AssertProblem, name: str, code: str
) -> None:
    response = client.post("/v1/equivariance", json={**TOY, "select": ["A", name]})
    found = assert_problem(response, "invalid-selection")
    faults = [(fault["pointer"], fault["code"]) for fault in found["errors"]]
    assert faults == [("/select/1", code)]


def test_an_input_that_does_not_fit_is_told(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    body = {**LETTERS, "input": {"token_ids": [0, 1, 2, 3, 9]}}
    found = assert_problem(client.post("/v1/equivariance", json=body), "invalid-input")
    pointers = [fault["pointer"] for fault in found["errors"]]
    assert pointers == ["/input/token_ids/3", "/input/token_ids/4"]


@pytest.mark.parametrize(
    ("limit", "most"), [("work_flops", 2_000_000), ("memory_bytes", 34_600_000)]
)
def test_all_runs_count_before_the_first(
    make_client: Callable[..., TestClient], assert_problem: AssertProblem, limit: str, most: int
) -> None:
    client = make_client(**{limit: most})
    one_trace = {**LETTERS, "select": ["Z"], "identities": False, "dtype": "float64"}
    assert client.post("/v1/trace", json=one_trace).status_code == 200
    response = client.post("/v1/equivariance", json={**LETTERS, "select": ["*"]})
    found = assert_problem(response, "beyond-limit")
    assert found["limit"]["name"] == limit
