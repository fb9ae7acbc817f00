"""POST /v1/sweep: each cell is what a trace with the same intervention measures."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from starlette.testclient import TestClient

from near import near
from service import examples as trace_examples
from service.example_bodies import sweep as examples

Json = dict[str, Any]

HEADS: Json = examples.REQUESTS["heads"]["value"]
ABLATED: Json = examples.REQUESTS["ablated"]["value"]


def swept(client: TestClient, request: Json) -> Json:
    response = client.post("/v1/sweep", json=request)
    assert response.status_code == 200, response.text
    found: Json = response.json()
    return found


def traced(client: TestClient, request: Json, intervention: Json) -> Json:
    """What one measure becomes by one intervention."""
    body = {
        "model": request["model"],
        "input": request["input"],
        "interventions": [intervention],
        "measures": [request["measure"]],
        "select": ["blocks.0.resid_pre"],
        "clean": False,
    }
    response = client.post("/v1/trace", json=body)
    assert response.status_code == 200, response.text
    effect: Json = response.json()["effects"][0]
    return effect


def test_example_is_answered_as_shown(client: TestClient) -> None:
    found = swept(client, examples.REQUESTS["steered"]["value"])
    assert near(found, dict(examples.ANSWER))
    assert list(found) == list(examples.ANSWER)


@pytest.mark.parametrize("path", ["total", "direct"])
@pytest.mark.parametrize("base", ["clean", "corrupted"])
def test_each_head_is_what_a_trace_measures(client: TestClient, base: str, path: str) -> None:
    found = swept(client, {**HEADS, "base": base, "path": path})
    donor = "corrupted" if base == "clean" else "clean"
    one_run = {**HEADS, "input": HEADS[base]}
    assert (found["axes"], found["shape"]) == (["block", "head"], [2, 4])
    for block, head in product(range(2), range(4)):
        intervention = {
            "stage": f"blocks.{block}.attn.z",
            "op": "patch",
            "from": HEADS[donor],
            "where": {"head": [head]},
        }
        effect = traced(client, one_run, intervention)
        assert found["data"][block][head] == effect[path]["after"]
        assert found[base] == effect["before"]


def test_each_position_is_what_a_trace_measures(client: TestClient) -> None:
    """Other ops, blocks from the end, and an input with a batch axis."""
    batch = {"token_ids": [[0, 1, 2, 3, 0, 1, 2], [5, 6, 7, 8, 5, 6, 7]]}
    measure = {"logit": "H", "position": 5, "batch": 1}
    request = {
        "model": {"name": "induction"},
        "clean": batch,
        "stage": "ffn_out",
        "op": "scale",
        "value": -0.5,
        "over": ["position", "block"],
        "where": {"block": [-1], "position": [4, -2], "batch": [1]},
        "measure": measure,
    }
    found = swept(client, request)
    assert found["index"] == {"position": [4, 5], "block": [1]}
    for at, position in enumerate([4, 5]):
        where = {"position": [position], "batch": [1]}
        intervention = {
            "stage": "blocks.1.ffn_out",
            "op": "scale",
            "value": -0.5,
            "where": where,
        }
        one_run = {"model": request["model"], "input": batch, "measure": measure}
        effect = traced(client, one_run, intervention)
        assert found["data"][at] == [effect["total"]["after"]]


def test_normalized_counts_from_corrupted_to_clean(client: TestClient) -> None:
    found = swept(client, HEADS)
    between = found["clean"] - found["corrupted"]
    expected = [[(x - found["corrupted"]) / between for x in row] for row in found["data"]]
    assert found["normalized"] == expected
    assert found["reason"] is None
    whole = swept(client, {**HEADS, "stage": "blocks.0.resid_pre", "over": ["block"]})
    assert whole["data"] == [whole["clean"]]
    assert whole["normalized"] == [1.0]


def test_normalized_is_null_with_the_reason(client: TestClient) -> None:
    alone = swept(client, ABLATED)
    assert (alone["corrupted"], alone["normalized"]) == (None, None)
    assert alone["reason"] == "there is no corrupted run to count from"
    same = swept(client, {**HEADS, "corrupted": HEADS["clean"]})
    assert same["normalized"] is None
    assert same["reason"] == "the clean and the corrupted measure are the same"


def test_numbers_that_are_not_finite_are_null_and_named(client: TestClient) -> None:
    blown = {
        **ABLATED,
        "op": "scale",
        "value": 1e38,
        "stage": "logits",
        "over": ["position"],
        "where": {"position": [0, -1]},
    }
    found = swept(client, blown)
    assert found["data"] == [found["clean"], None]
    assert found["nonfinite"] == {"+inf": [[1, 1]]}


def test_same_request_gets_the_same_bytes(client: TestClient) -> None:
    first, second = (client.post("/v1/sweep", json=HEADS).content for _ in range(2))
    assert first == second


FAULTS: dict[str, tuple[Json, str, str, str]] = {
    "patch without corrupted": ({"corrupted": None}, "invalid-request", "", "sweep"),
    "corrupted without patch": ({"op": "zero"}, "invalid-request", "", "sweep"),
    "axis twice": ({"over": ["head", "head"]}, "invalid-request", "", "sweep"),
    "no axis": ({"over": []}, "invalid-request", "/over", "too_short"),
    "strange axis": ({"over": ["neuron"]}, "invalid-request", "/over/0", "literal_error"),
    "axis of another stage": ({"over": ["d_ff"]}, "unanswerable", "/over/0", "no_such_axis"),
    "unknown stage": ({"stage": "attn.zz"}, "unanswerable", "/stage", "unknown_stage"),
    "derived stage": ({"stage": "attn.head_out"}, "unanswerable", "/stage", "derived_stage"),
    "absent stage": ({"stage": "attn_sum"}, "unanswerable", "/stage", "stage_absent"),
    "stages": ({"stage": "blocks.*.attn.*"}, "unanswerable", "/stage", "several_stages"),
    "block out of range": (
        {"where": {"block": [2]}}, "unanswerable", "/where/block/0", "index_out_of_range"),
    "head out of range": (
        {"where": {"head": [0, -5]}}, "unanswerable", "/where/head/1", "index_out_of_range"),
    "value with patch": ({"value": 1}, "unanswerable", "/value", "value_unused"),
    "mean_over with patch": (
        {"mean_over": ["position"]}, "unanswerable", "/mean_over", "over_unused"),
    "corrupted of another length": (
        {"corrupted": {"text": "QWERTUQWER"}}, "unanswerable", "/corrupted", "shape_mismatch"),
    "corrupted that the tokenizer lacks": (
        {"corrupted": {"text": "qwertuqwert"}}, "invalid-input", "/corrupted/text",
        "out_of_vocabulary"),
    "clean out of the vocabulary": (
        {"clean": {"token_ids": [26] * 11}}, "invalid-input", "/clean/token_ids/0",
        "out_of_vocabulary"),
    "measured token unknown": (
        {"measure": {"logit": "qq"}}, "unanswerable", "/measure/logit", "not_one_token"),
    "measured row out of range": (
        {"measure": {"logit": "Y", "position": 11}}, "unanswerable", "/measure/position",
        "index_out_of_range"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_told_where_it_is(
    client: TestClient, assert_problem: Callable[..., Json], name: str
) -> None:
    change, problem, pointer, code = FAULTS[name]
    body = assert_problem(client.post("/v1/sweep", json={**HEADS, **change}), problem)
    assert [(fault["pointer"], fault["code"]) for fault in body["errors"]][:1] == [(pointer, code)]


def test_blocks_without_the_stage_are_left_out_and_refused_by_number(
    client: TestClient, assert_problem: Callable[..., Json]
) -> None:
    """Of two blocks the second one turns nothing."""
    request = {
        "model": trace_examples.TRACE["experts"]["value"]["model"],
        "clean": {"token_ids": [3, 1, 4]},
        "stage": "attn.q_rot",
        "op": "zero",
        "over": ["block", "head"],
        "measure": {"logit": 5},
    }
    assert swept(client, request)["index"] == {"block": [0], "head": [0, 1]}
    named = client.post("/v1/sweep", json={**request, "where": {"block": [0, -1]}})
    body = assert_problem(named, "unanswerable")
    assert [fault["pointer"] for fault in body["errors"]] == ["/where/block/1"]


def test_base_corrupted_needs_a_corrupted_input(
    client: TestClient, assert_problem: Callable[..., Json]
) -> None:
    response = client.post("/v1/sweep", json={**ABLATED, "base": "corrupted"})
    assert_problem(response, "invalid-request")


def test_value_beyond_the_dtype_is_refused(
    client: TestClient, assert_problem: Callable[..., Json]
) -> None:
    asked = {**ABLATED, "op": "set", "value": 1e39}
    body = assert_problem(client.post("/v1/sweep", json=asked), "unanswerable")
    assert [(fault["pointer"], fault["code"]) for fault in body["errors"]] == [
        ("/value", "overflow")
    ]


@pytest.mark.parametrize(
    ("limit", "most"), [("work_flops", 2_000_000), ("answer_elements", 15), ("memory_bytes", 1000)]
)
def test_sweep_beyond_a_limit_is_refused_before_it_is_run(
    make_client: Callable[..., TestClient],
    assert_problem: Callable[..., Json],
    limit: str,
    most: int,
) -> None:
    response = make_client(**{limit: most}).post("/v1/sweep", json=HEADS)
    body = assert_problem(response, "beyond-limit")
    assert body["limit"]["name"] == limit
    assert body["limit"]["got"] > most
    assert "Narrow the grid" in body["advice"]["text"]


def test_a_grid_of_more_cells_than_the_work_allows_is_refused_at_once(
    client: TestClient, assert_problem: Callable[..., Json]
) -> None:
    huge = {
        "model": {"preset": "gpt2", "weights": {"init": "seeded"}},
        "clean": {"token_ids": [7] * 1024},
        "stage": "ffn.hidden",
        "op": "zero",
        "over": ["block", "position", "d_ff"],
        "measure": {"logit": 5},
    }
    assert_problem(client.post("/v1/sweep", json=huge), "beyond-limit")
