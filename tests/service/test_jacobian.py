"""POST /v1/jacobian: differences of traces agree; limits and faults are told before it runs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from near import near
from schemas.jacobian_answers import JacobianAnswer
from service.example_bodies import jacobian as bodies

Json = dict[str, Any]
MakeClient = Callable[..., TestClient]
AssertProblem = Callable[..., dict[str, Any]]

TOY: Json = {"model": {"name": "eiffel-toy"}, "input": {"text": "the Eiffel tower"}}
SORTED: Json = {"model": {"name": "letter-sort"}, "input": {"text": "CABBAC"}}
POST_NORM: Json = {
    **SORTED,
    "model": {"name": "letter-sort", "config": {"norm": {"placement": "post"}}},
}
LOGITS: Json = {**SORTED, "measure": {"logit": "A", "minus": "B"}}
STEP = 1e-4


def asked(client: TestClient, body: Json) -> Any:  # noqa: ANN401 - plain JSON
    response = client.post("/v1/jacobian", json=body)
    assert response.status_code == 200, response.text
    TypeAdapter(JacobianAnswer).validate_json(response.content, strict=True)
    return response.json()


def effect(client: TestClient, measure: Json, intervention: Json) -> float:
    """What a measure becomes by one intervention, in a trace in float64."""
    body = {
        **SORTED,
        "interventions": [intervention],
        "measures": [measure],
        "select": ["blocks.0.resid_pre"],
        "clean": False,
        "dtype": "float64",
    }
    response = client.post("/v1/trace", json=body)
    assert response.status_code == 200, response.text
    return float(response.json()["effects"][0]["total"]["after"])


def slope(client: TestClient, measure: Json, stage: str, where: Json) -> float:
    """By central differences of two traces with a number added to one entry of a stage."""
    change = {"stage": stage, "op": "add", "where": where}
    up, down = (effect(client, measure, {**change, "value": h}) for h in (STEP, -STEP))
    return (up - down) / (2 * STEP)


@pytest.mark.parametrize("name", bodies.REQUESTS)
def test_an_example_is_answered_as_described(client: TestClient, name: str) -> None:
    asked(client, bodies.REQUESTS[name]["value"])


def test_the_answer_that_is_shown_is_the_answer(client: TestClient) -> None:
    found = asked(client, bodies.REQUESTS["itself"]["value"])
    assert near(found, dict(bodies.ANSWER))
    assert list(found) == list(bodies.ANSWER)


def test_entries_of_a_matrix_are_differences_of_traces(client: TestClient) -> None:
    pair = {"of": "blocks.1.resid_post", "by": "blocks.0.resid_pre", "position": -1, "source": 2}
    found = np.array(
        asked(client, {**SORTED, **pair, "ask": ["matrix"]})["jacobian"]["whole"]["matrix"]
    )
    assert found.shape == (48, 48)
    for i, j in ((0, 0), (7, 3), (40, 47)):
        direction = np.eye(48)[i].tolist()
        measure = {"stage": pair["of"], "direction": direction, "position": -1}
        where = {"position": [2], "d_model": [j]}
        expected = slope(client, measure, "blocks.0.resid_pre", where)
        assert found[i, j] == pytest.approx(expected, abs=1e-7 * np.abs(found).max())


def test_entries_of_a_gradient_are_differences_of_traces(client: TestClient) -> None:
    body = {**LOGITS, "gradients": ["blocks.1.attn.z"]}
    found = asked(client, body)
    tensor = found["gradients"]["blocks.1.attn.z"]
    assert tensor["axes"] == ["head", "position", "d_value"]
    gradient = np.array(tensor["data"])
    for head, position, coordinate in ((0, 5, 3), (2, 1, 0)):
        where = {"head": [head], "position": [position], "d_value": [coordinate]}
        expected = slope(client, LOGITS["measure"], "blocks.1.attn.z", where)
        entry = gradient[head, position, coordinate]
        assert entry == pytest.approx(expected, abs=1e-6 * np.abs(gradient).max())


def test_attribution_is_values_times_gradient_and_its_sum(client: TestClient) -> None:
    name = "blocks.1.attn.z"
    select = [{"name": name, "head": [1], "position": [-1]}]
    found = asked(client, {**LOGITS, "gradients": select})
    body = {**SORTED, "select": select, "dtype": "float64", "identities": False}
    values = np.array(client.post("/v1/trace", json=body).json()["tensors"][name]["data"])
    gradient, attribution = (found[key][name] for key in ("gradients", "attribution"))
    assert attribution["index"] == gradient["index"] == {"head": [1], "position": [5]}
    product = values * np.array(gradient["data"])
    assert np.allclose(product, attribution["data"], rtol=1e-14, atol=0)
    assert attribution["sum"] == pytest.approx(product.sum(), rel=1e-12)


def test_measure_is_the_difference_of_the_traces_logits(client: TestClient) -> None:
    found = asked(client, {**LOGITS, "gradients": ["logits"]})
    body = {**SORTED, "select": ["logits"], "dtype": "float64"}
    row = client.post("/v1/trace", json=body).json()["tensors"]["logits"]["data"][-1]
    assert found["measure"] == {
        "stage": "logits",
        "position": 5,
        "batch": None,
        "value": pytest.approx(row[0] - row[1], rel=1e-14),
    }
    assert found["gradients"]["logits"]["data"][-1] == [1.0, -1.0, 0.0]


def test_masked_scores_are_attributed_nothing(client: TestClient) -> None:
    found = asked(client, {**LOGITS, "gradients": ["blocks.0.attn.scores"]})
    for key in ("gradients", "attribution"):
        told = found[key]["blocks.0.attn.scores"]
        assert "nonfinite" not in told
        assert np.triu(np.array(told["data"]), 1).any() == np.False_


def test_identity_and_branch_add_up_and_so_do_the_factors(client: TestClient) -> None:
    pair = {"of": "blocks.0.resid_mid", "by": "blocks.0.resid_pre", "position": 3}
    found = asked(client, {**POST_NORM, **pair})["jacobian"]
    factors, eye = found["factors"], np.eye(48)
    assert (found["identity"], factors["sum"]["identity"]) == (0, 1)
    assert (found["source"], factors["stage"]) == (3, "blocks.0.attn_sum")
    norm, total, branch, whole = (
        np.array(part["matrix"])
        for part in (
            factors["norm"],
            factors["sum"]["whole"],
            factors["sum"]["branch"],
            found["whole"],
        )
    )
    assert np.array_equal(eye + branch, total)
    assert np.allclose(norm @ total, whole, rtol=0, atol=1e-12 * np.abs(whole).max())
    assert found["whole"]["singular_values"] == pytest.approx(np.linalg.svd(whole)[1].tolist())
    assert found["whole"]["norms"]["frobenius"] == pytest.approx(np.linalg.norm(whole))
    assert found["whole"]["norms"]["spectral"] == found["whole"]["singular_values"][0]


@pytest.mark.parametrize(
    ("model", "of", "said"),
    [
        ({"name": "letter-sort"}, "blocks.0.resid_mid", "no norm of a sum"),
        (POST_NORM["model"], "blocks.0.resid_post", "more than one sublayer"),
    ],
)
def test_what_has_no_factors_is_told_whole_with_the_reason(
    client: TestClient, model: Json, of: str, said: str
) -> None:
    body = {**SORTED, "model": model, "of": of, "by": "blocks.0.resid_pre"}
    found = asked(client, body)["jacobian"]
    assert found["factors"] is None
    assert said in found["not_factored"]
    assert len(found["whole"]["matrix"]) == 48


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeroed_branches_are_exactly_i(client: TestClient, dtype: str) -> None:
    edits = [{"tensor": f"blocks.0.{name}", "op": "zero"} for name in ("attn.W_O", "ffn.W_out")]
    model = {"name": "letter-sort", "weights": {"edits": edits}}
    pair = {"of": "blocks.0.resid_post", "by": "blocks.0.resid_pre", "dtype": dtype}
    found = asked(client, {**SORTED, "model": model, **pair})["jacobian"]
    assert found["identity"] == 1
    assert found["whole"]["matrix"] == np.eye(48).tolist()
    assert found["branch"]["norms"] == {"frobenius": 0.0, "spectral": 0.0}


def test_row_of_a_batch_is_as_if_alone(client: TestClient) -> None:
    pair = {"of": "blocks.1.resid_post", "by": "blocks.0.resid_pre", "source": 1, "ask": ["matrix"]}
    both = {**SORTED, "input": {"text": ["AAABBB", "CABBAC"]}}
    alone = asked(client, {**SORTED, **pair})["jacobian"]
    found = asked(client, {**both, **pair, "batch": -1})["jacobian"]
    assert (alone["batch"], found["batch"]) == (None, 1)
    assert near(found["whole"], alone["whole"])


def test_gradient_of_a_row_of_a_batch_is_0_in_the_others(client: TestClient) -> None:
    body = {**LOGITS, "input": {"text": ["AAABBB", "CABBAC"]}, "gradients": ["blocks.0.resid_pre"]}
    body["measure"] = {**LOGITS["measure"], "batch": 1}
    found = np.array(asked(client, body)["gradients"]["blocks.0.resid_pre"]["data"])
    assert not found[0].any()
    assert found[1].any()


def test_same_request_has_the_same_bytes(client: TestClient) -> None:
    one, again = (client.post("/v1/jacobian", json={**LOGITS, "gradients": ["X"]}) for _ in "ab")
    assert one.content == again.content


def test_stages_that_only_a_wildcard_met_are_told_with_reasons(client: TestClient) -> None:
    measure = {"stage": "blocks.0.resid_mid", "direction": [1.0] * 48}
    found = asked(client, {**SORTED, "measure": measure, "gradients": ["blocks.*.resid_*"]})
    assert list(found["gradients"]) == ["blocks.0.resid_pre", "blocks.0.resid_mid"]
    assert "computed after" in found["absent"]["blocks.2.resid_post"]


UNANSWERABLE = [
    ({**TOY, "of": "nothing", "by": "neither"}, ["/of", "/by"]),
    ({**TOY, "of": "Z", "by": "X", "position": 3, "source": -4}, ["/position", "/source"]),
    ({**TOY, "of": "X", "by": "Z"}, ["/by"]),
    ({**TOY, "of": "A", "by": "X"}, ["/of"]),
    ({**TOY, "of": "resid_mid", "by": "X"}, ["/of"]),
    ({**SORTED, "of": "Z", "by": "X"}, ["/of", "/by"]),
    ({**TOY, "of": "Z", "by": "X", "batch": 1}, ["/batch"]),
    ({**LOGITS, "gradients": ["X", "blocks.0.attn.head_out"]}, ["/gradients/1"]),
    ({**SORTED, "measure": {"logit": "D"}, "gradients": ["X"]}, ["/measure/logit"]),
]
UNSELECTED = [
    ({**LOGITS, "gradients": ["nothing"]}, ["/gradients/0"]),
    ({**LOGITS, "gradients": ["X", {"name": "Z", "head": [0]}]}, ["/gradients/1/head"]),
]
REFUSED = [
    *((body, "unanswerable", pointers) for body, pointers in UNANSWERABLE),
    *((body, "invalid-selection", pointers) for body, pointers in UNSELECTED),
    ({**TOY, "of": "Z"}, "invalid-request", [""]),
]


@pytest.mark.parametrize(("body", "code", "pointers"), REFUSED)
def test_what_cannot_be_answered_is_told_with_its_place(
    client: TestClient, assert_problem: AssertProblem, body: Json, code: str, pointers: list[str]
) -> None:
    problem = assert_problem(client.post("/v1/jacobian", json=body), code)
    assert [fault["pointer"] for fault in problem["errors"]] == pointers


BIG: Json = {
    "model": {
        "config": {"d_model": 4096, "n_layers": 8, "attention": {"n_heads": 32}},
        "weights": {"init": "seeded"},
    },
    "input": {"tensor": [[0.0] * 4096]},
    "dtype": "float32",
}


ONE_BLOCK = {"of": "blocks.0.resid_post", "by": "blocks.0.resid_pre"}
ALL_BLOCKS = {"of": "blocks.7.resid_post", "by": "blocks.0.resid_pre"}


@pytest.mark.parametrize(
    ("body", "limit", "advice"),
    [
        ({**ONE_BLOCK, "ask": ["matrix"]}, "answer_elements", "norms"),
        ({**ALL_BLOCKS, "ask": ["norms"]}, "memory_bytes", "smaller"),
    ],
)
def test_what_is_beyond_a_limit_is_told_before_anything_is_made(
    client: TestClient, assert_problem: AssertProblem, body: Json, limit: str, advice: str
) -> None:
    response = client.post("/v1/jacobian", json={**BIG, **body})
    problem = assert_problem(response, "beyond-limit")
    assert problem["limit"]["name"] == limit
    assert advice in problem["advice"]["text"]
    assert problem["estimate"]["seconds"] > 0


def test_work_is_bounded(make_client: MakeClient, assert_problem: AssertProblem) -> None:
    pair = {"of": "blocks.2.resid_post", "by": "blocks.0.resid_pre", "ask": ["norms"]}
    response = make_client(work_flops=1_000_000).post("/v1/jacobian", json={**SORTED, **pair})
    assert assert_problem(response, "beyond-limit")["limit"]["name"] == "work_flops"


def test_numbers_told_in_cost_are_those_of_the_answer(client: TestClient) -> None:
    found = asked(client, {**SORTED, "of": "blocks.0.resid_mid", "by": "blocks.0.resid_pre"})
    told = [found["jacobian"][key] for key in ("whole", "branch")]
    count = sum(np.size(x["matrix"]) + len(x["singular_values"]) + 2 for x in told)
    assert found["cost"]["elements"] == count
    found = asked(client, {**LOGITS, "gradients": ["X"]})
    counts = [
        np.size(x["data"]) for key in ("gradients", "attribution") for x in found[key].values()
    ]
    assert found["cost"]["elements"] == sum(counts)


def test_numbers_beyond_the_dtype_are_null(client: TestClient) -> None:
    model = {
        "config": {"d_model": 2, "attention": {"n_heads": 1}, "norm": {"kind": "none"},
                   "ffn": {"activation": "relu2"}},
        "weights": {"init": "identity"},
    }  # fmt: skip
    body = {"model": model, "input": {"tensor": [[1e308, 1e308]]}, "of": "Z", "by": "X"}
    found = asked(client, body)["jacobian"]["whole"]
    assert found["matrix"][0][0] is None
    assert found["singular_values"] == [None, None]
    assert found["norms"] == {"frobenius": None, "spectral": None}
