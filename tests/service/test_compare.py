"""POST /v1/compare: two runs that differ in a known place."""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from near import near
from service.example_bodies import compare as examples

Json = dict[str, Any]

SORTED: Json = {"model": {"name": "letter-sort"}, "input": {"text": "CABBAC"}}
TOY: Json = {"model": {"name": "eiffel-toy"}, "input": {"text": "the Eiffel tower"}}


def compared(client: TestClient, a: Json, b: Json, **more: object) -> Json:
    response = client.post("/v1/compare", json={"a": a, "b": b, **more})
    assert response.status_code == 200, response.text
    found: Json = response.json()
    return found


def by_name(found: Json) -> dict[str, Json]:
    return {stage["name"]: stage for stage in found["stages"]}


def test_example_is_answered_as_shown(client: TestClient) -> None:
    request = examples.REQUESTS["weights"]["value"]
    found = compared(client, request["a"], request["b"])
    assert near(found, dict(examples.ANSWER))


def test_a_run_and_itself_do_not_differ(client: TestClient) -> None:
    found = compared(client, SORTED, SORTED, threshold=0)
    trace = client.post("/v1/trace", json=SORTED).json()
    assert [stage["name"] for stage in found["stages"]] == list(trace["tensors"])
    assert [stage["shape"] for stage in found["stages"]] == [
        tensor["shape"] for tensor in trace["tensors"].values()
    ]
    assert {stage["max_abs"] for stage in found["stages"]} == {0.0}
    assert found["first_difference"] is None
    assert found["a"] == found["b"] == {key: trace[key] for key in ("model", "input")}


def test_masked_scores_are_the_same(client: TestClient) -> None:
    scores = by_name(compared(client, SORTED, SORTED))["blocks.0.attn.scores"]
    assert (scores["max_abs"], scores["nonfinite"], scores["norm_ratio"]) == (0.0, 0, 1.0)


def test_mask_and_no_mask_are_infinitely_apart(client: TestClient) -> None:
    free = {**SORTED, "model": {"name": "letter-sort", "config": {"attention": {"mask": "full"}}}}
    scores = by_name(compared(client, SORTED, free))["blocks.0.attn.scores"]
    assert (scores["max_abs"], scores["rel"], scores["differs"]) == (None, None, True)
    assert scores["nonfinite"] == 3 * 15  # of three heads the triangle above the diagonal
    assert compared(client, SORTED, free)["first_difference"] == "blocks.0.attn.scores"


def test_intervention_is_found_as_the_first_difference(client: TestClient) -> None:
    changed = {
        **SORTED,
        "interventions": [{"stage": "blocks.1.attn.z", "op": "zero", "where": {"head": [0]}}],
    }
    found = compared(client, SORTED, changed)
    assert found["first_difference"] == "blocks.1.attn.z"
    assert by_name(found)["blocks.0.resid_post"]["max_abs"] == 0.0
    assert by_name(found)["logits"]["differs"]


def test_patch_from_the_other_input_gives_its_stage(client: TestClient) -> None:
    other = {**SORTED, "input": {"text": "CABBAA"}}
    patched = {
        **SORTED,
        "interventions": [{"stage": "embed", "op": "patch", "from": other["input"]}],
    }
    assert compared(client, other, patched, threshold=0)["first_difference"] is None


def test_path_of_an_intervention_is_honoured(client: TestClient) -> None:
    changed = {**SORTED, "interventions": [{"stage": "blocks.0.attn_out", "op": "zero"}]}
    direct = compared(client, SORTED, {**changed, "path": "direct"})
    assert by_name(direct)["blocks.1.attn_out"]["max_abs"] == 0.0
    assert by_name(compared(client, SORTED, changed))["blocks.1.attn_out"]["max_abs"] > 0.0


def test_what_a_trace_tells_besides_changes_nothing(client: TestClient) -> None:
    measured = {
        **SORTED,
        "interventions": [{"stage": "blocks.1.attn.z", "op": "zero"}],
        "measures": [{"logit": 0}],
        "clean": True,
    }
    plain = {key: measured[key] for key in (*SORTED, "interventions")}
    other = {**SORTED, "identities": False}
    assert compared(client, SORTED, measured) == compared(client, other, plain)


def test_inputs_of_other_lengths_have_other_shapes(client: TestClient) -> None:
    found = compared(client, SORTED, {**SORTED, "input": {"text": "CABBA"}})
    assert found["stages"] == []
    assert found["shapes"][0] == {"name": "embed", "a": [6, 48], "b": [5, 48]}
    last = {"select": [{"name": "logits", "position": [-1]}]}
    rows = compared(client, {**SORTED, **last}, {**SORTED, "input": {"text": "CABBA"}, **last})
    assert [stage["name"] for stage in rows["stages"]] == ["logits"]


def test_stages_of_one_run_alone_come_with_the_reason(client: TestClient) -> None:
    post = {**SORTED, "model": {"name": "letter-sort", "config": {"norm": {"placement": "post"}}}}
    found = compared(client, SORTED, post)
    assert "blocks.0.attn_sum" in found["only_in"]["b"]
    assert found["only_in"]["a"]["final_norm.out"]
    narrow = compared(client, SORTED, {**SORTED, "select": ["logits"]})
    assert narrow["only_in"]["a"]["embed"] == "not selected there"


def test_threshold_decides_what_differs(client: TestClient) -> None:
    double = {**SORTED, "dtype": "float64"}
    assert compared(client, SORTED, double, threshold=1e-3)["first_difference"] is None
    strict = compared(client, SORTED, double, threshold=0)
    assert strict["first_difference"] == "blocks.0.resid_pre"
    assert strict["threshold"] == 0


FAULTS: dict[str, tuple[str, Json, str, str]] = {
    "key": ("a", {"inputs": {}}, "invalid-request", "/a/inputs"),
    "config": (
        "b", {"model": {"config": {"d_model": 5, "attention": {"n_heads": 2}}}}, "config-rule",
        "/b/model/config/attention/n_heads"),
    "model": ("a", {"model": {"name": "nobody"}}, "unknown-model", "/a/model/name"),
    "input": ("b", {"input": {"token_ids": [0, 9]}}, "invalid-input", "/b/input/token_ids/1"),
    "select": ("b", {"select": ["Z", "attn.zz"]}, "invalid-selection", "/b/select/1"),
    "intervention": (
        "a", {"interventions": [{"stage": "attn.z", "op": "scale"}]}, "invalid-intervention",
        "/a/interventions/0"),
    "donor": (
        "b", {"interventions": [{"stage": "Z", "op": "patch", "from": {"token_ids": [9]}}]},
        "invalid-input", "/b/interventions/0/from/token_ids/0"),
    "weights": (
        "b", {"model": {"name": "letter-sort", "weights": {"tensors": {"unembed.W_U": [[1.0]]}}}},
        "shape-mismatch", "/b/model/weights/tensors/unembed.W_U"),
    "base64": (
        "a",
        {"input": {"tensor": {"dtype": "float64", "shape": [1, 1], "data": "AAAAAAAA+H8="}}},
        "invalid-request", "/a/input/tensor/data"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_told_below_the_run_that_has_it(
    client: TestClient, assert_problem: Callable[..., Json], name: str
) -> None:
    side, change, problem, pointer = FAULTS[name]
    request = {"a": SORTED, "b": SORTED}
    request[side] = {**SORTED, **change}
    body = assert_problem(client.post("/v1/compare", json=request), problem)
    assert body["errors"][0]["pointer"] == pointer


def test_threshold_is_a_number_from_zero(
    client: TestClient, assert_problem: Callable[..., Json]
) -> None:
    for wrong in (-1, None, "1"):
        body = {"a": TOY, "b": TOY, "threshold": wrong}
        found = assert_problem(client.post("/v1/compare", json=body), "invalid-request")
        assert found["errors"][0]["pointer"] == "/threshold"


def test_one_run_beyond_a_limit_is_told_where_it_is(
    make_client: Callable[..., TestClient], assert_problem: Callable[..., Json]
) -> None:
    small = make_client(positions=3)
    body = assert_problem(small.post("/v1/compare", json={"a": TOY, "b": SORTED}), "beyond-limit")
    assert body["errors"][0]["pointer"] == "/b/input/text"


def test_two_runs_are_beyond_a_limit_that_each_fits(
    make_client: Callable[..., TestClient], assert_problem: Callable[..., Json]
) -> None:
    cost = make_client().post("/v1/trace", json=SORTED).json()["cost"]
    tight = make_client(work_flops=2 * cost["flops"] - 1)
    assert tight.post("/v1/trace", json=SORTED).status_code == 200
    response = tight.post("/v1/compare", json={"a": SORTED, "b": SORTED})
    body = assert_problem(response, "beyond-limit")
    assert (body["limit"]["name"], body["limit"]["got"]) == ("work_flops", 2 * cost["flops"])
    assert "Select fewer" in body["advice"]["text"]
