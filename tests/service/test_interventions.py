"""POST /v1/trace with interventions: what is answered, what is refused, what it costs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from compute import initial
from schemas.answers import TraceAnswer

AssertProblem = Callable[..., dict[str, Any]]
MakeClient = Callable[..., TestClient]
INDUCTION = {"model": {"name": "induction"}, "input": {"text": "QWERTYQWERT"}}
TOY = {"model": {"name": "eiffel-toy"}, "input": {"text": "the Eiffel tower"}}
ADDED = {"interventions", "before", "delta", "effects"}
SEEDED = {"d_model": 8, "n_layers": 3, "attention": {"n_heads": 2}, "vocab": 11}
WRITTEN = {"model": {"config": SEEDED}, "input": {"token_ids": [1, 2, 3]}, "dtype": "float64"}


def post(client: TestClient, *parts: dict[str, Any], **given: object) -> Any:  # noqa: ANN401
    request: dict[str, Any] = {}
    for part in (*parts, given):
        request |= part
    response = client.post("/v1/trace", json=request)
    assert response.status_code == 200, response.text
    return response.json()


def data(tensors: dict[str, Any]) -> dict[str, np.ndarray]:
    return {
        name: np.array([-np.inf if x is None else x for x in np.ravel(tensor["data"])], float)
        for name, tensor in tensors.items()
    }


def test_tensors_are_after_and_before_is_the_plain_trace(client: TestClient) -> None:
    change = {"stage": "resid_pre", "op": "scale", "value": 2, "where": {"block": [1]}}
    answer = post(client, WRITTEN, interventions=[change])
    plain = post(client, WRITTEN)
    TypeAdapter(TraceAnswer).validate_python(answer)
    assert answer.keys() == plain.keys() | ADDED
    assert answer["before"] == plain["tensors"]
    after, before, delta = (data(answer[key]) for key in ("tensors", "before", "delta"))
    assert after.keys() == before.keys() == delta.keys()
    with np.errstate(invalid="ignore"):
        for name, change in delta.items():
            expected = np.where(after[name] == before[name], 0.0, after[name] - before[name])
            assert np.array_equal(change, expected), name
    assert np.array_equal(after["blocks.1.resid_pre"], 2 * before["blocks.1.resid_pre"])
    assert answer["model"] == plain["model"]
    assert answer["input"] == plain["input"]


def test_masked_scores_do_not_differ(client: TestClient) -> None:
    change = {"stage": "blocks.0.attn.q", "op": "scale", "value": 2}
    answer = post(client, WRITTEN, interventions=[change], select=["blocks.0.attn.scores"])
    delta = answer["delta"]["blocks.0.attn.scores"]
    assert "nonfinite" not in delta
    assert answer["tensors"]["blocks.0.attn.scores"]["nonfinite"] == "-inf"


def test_slices_and_summaries_are_the_same_in_all_three(client: TestClient) -> None:
    select = [
        {"name": "blocks.2.resid_post", "position": [-1]},
        {"name": "logits", "summary": True},
    ]
    answer = post(client, WRITTEN, select=select, interventions=[{"stage": "z", "op": "zero"}])
    for key in ("tensors", "before", "delta"):
        assert answer[key]["blocks.2.resid_post"]["index"] == {"position": [2]}
        assert answer[key]["logits"].keys() >= {"summary"}
    change = np.array(answer["delta"]["blocks.2.resid_post"]["data"])
    whole = post(client, WRITTEN, interventions=[{"stage": "z", "op": "zero"}])
    assert change[0].tolist() == whole["delta"]["blocks.2.resid_post"]["data"][2]


@pytest.mark.parametrize("extra", [{}, {"clean": False}, {"path": "direct"}])
def test_empty_list_is_the_plain_trace_to_the_byte(
    client: TestClient, extra: dict[str, object]
) -> None:
    plain = client.post("/v1/trace", json=TOY)
    empty = client.post("/v1/trace", json=TOY | extra | {"interventions": [], "measures": []})
    assert plain.content == empty.content


def test_identities_of_a_changed_stage_are_not_judged(client: TestClient) -> None:
    answer = post(client, INDUCTION, interventions=[{"stage": "blocks.0.attn.z", "op": "zero"}])
    told = {one["name"]: one for one in answer["identities"]}
    assert told["blocks.0.mixture"]["reason"] == "patched: blocks.0.attn.z"
    assert told["blocks.0.mixture"]["holds"] is None
    assert told["blocks.1.mixture"]["holds"] is True
    assert not [one for one in answer["identities"] if one["holds"] is False]


@pytest.mark.parametrize("model", ["induction", "letter-sort"])
@pytest.mark.parametrize("path", ["total", "direct"])
def test_no_identity_fails_in_a_changed_run(client: TestClient, model: str, path: str) -> None:
    text = {"induction": "QWERTYQWERT", "letter-sort": "CABBAC"}[model]
    for stage in ("resid_mid", "attn.pattern", "ffn.hidden", "attn_out", "norm2.out", "logits"):
        changed = {"stage": stage, "op": "scale", "value": 1.5}
        answer = post(
            client,
            model={"name": model},
            input={"text": text},
            interventions=[changed],
            path=path,
            clean=False,
        )
        assert not [one for one in answer["identities"] if one["holds"] is False], stage


def test_direct_path_shows_frozen_updates(client: TestClient) -> None:
    change = {"stage": "blocks.0.attn.z", "op": "zero", "where": {"head": [0]}}
    answer = post(client, WRITTEN, interventions=[change], path="direct")
    delta = data(answer["delta"])
    assert delta["blocks.0.attn_out"].any()
    for name in ("blocks.0.ffn_out", "blocks.1.attn_out", "blocks.2.ffn_out"):
        assert not delta[name].any()
    told = {one["name"]: one["reason"] for one in answer["identities"]}
    assert told["blocks.1.ffn_product"] == "patched: blocks.1.ffn_out"
    head_out = data(answer["before"])["blocks.0.attn.head_out"].reshape(2, 3, 8)[0]
    last = delta["blocks.2.resid_post"].reshape(3, 8)
    assert np.abs(last + head_out).max() < 1e-15  # a few roundings of numbers near 0.1


def test_effects_are_those_of_total_and_direct_whatever_is_shown(client: TestClient) -> None:
    change = {"stage": "blocks.0.attn.z", "op": "zero", "where": {"head": [1]}}
    measures = [
        {"logit": 3},
        {"logit": 3, "minus": 4, "position": 0},
        {"stage": "blocks.2.resid_post", "direction": [1, 0, 0, 0, 0, 0, 0, -1]},
    ]
    shown = {
        (path, clean): post(
            client, WRITTEN, interventions=[change], measures=measures, path=path, clean=clean
        )
        for path in ("total", "direct")
        for clean in (True, False)
    }
    effects = [answer["effects"] for answer in shown.values()]
    assert all(one == effects[0] for one in effects)
    for path in ("total", "direct"):
        answer = shown[path, True]
        after, before = data(answer["tensors"]), data(answer["before"])
        logits = [x["logits"].reshape(3, 11) for x in (before, after)]
        streams = [x["blocks.2.resid_post"].reshape(3, 8) for x in (before, after)]
        expected = [
            [x[2, 3] for x in logits],
            [x[0, 3] - x[0, 4] for x in logits],
            [x[2, 0] - x[2, 7] for x in streams],
        ]
        for effect, (start, end) in zip(answer["effects"], expected, strict=True):
            assert effect["before"] == pytest.approx(start, rel=1e-14, abs=1e-15)
            assert effect[path]["after"] == pytest.approx(end, rel=1e-14, abs=1e-15)
            assert effect[path]["delta"] == effect[path]["after"] - effect["before"]
    assert shown["total", False]["before"] is None
    assert shown["total", False]["delta"] is None


def test_measure_alone_is_told_before_and_nothing_else(client: TestClient) -> None:
    answer = post(client, INDUCTION, measures=[{"logit": "Y"}], select=["logits"])
    TypeAdapter(TraceAnswer).validate_python(answer)
    logit = answer["tensors"]["logits"]["data"][10][24]
    (effect,) = answer["effects"]
    assert effect["before"] == pytest.approx(logit, rel=1e-6)  # printed as float32
    assert (effect["total"], effect["direct"]) == (None, None)
    assert (answer["before"], answer["delta"], answer["interventions"]) == (None, None, [])


def test_measuring_keeps_nothing_that_was_not_selected(client: TestClient) -> None:
    answer = post(client, INDUCTION, measures=[{"logit": "Y"}], select=["blocks.0.resid_pre"])
    plain = post(client, INDUCTION, select=["blocks.0.resid_pre"])
    assert answer["tensors"] == plain["tensors"]
    assert answer["identities"] == plain["identities"]
    assert answer["next_token"] is None


# Other inputs.


def test_patch_of_a_whole_stream_is_the_other_inputs_run(client: TestClient) -> None:
    other = {"text": "ABCDEFABCDE"}
    change = {"stage": "blocks.0.resid_pre", "op": "patch", "from": other}
    answer = post(client, INDUCTION, interventions=[change])
    theirs = post(client, INDUCTION | {"input": other})
    for name, tensor in theirs["tensors"].items():
        if name != "embed":
            assert answer["tensors"][name] == tensor
    assert answer["next_token"] == theirs["next_token"]


def test_equal_other_inputs_are_run_once(client: TestClient) -> None:
    def flops(*others: dict[str, object]) -> int:
        changes = [
            {"stage": "blocks.1.attn.z", "op": "patch", "where": {"head": [at]}, "from": other}
            for at, other in enumerate(others)
        ]
        cost: int = post(client, INDUCTION, interventions=changes, select=["logits"])["cost"][
            "flops"
        ]
        return cost

    one, other = {"text": "ABCDEFABCDE"}, {"text": "ABCDEGABCDE"}
    assert flops(one, one, one) == flops(one) < flops(one, other)


def test_texts_of_other_inputs_may_be_a_batch(client: TestClient) -> None:
    change = {
        "stage": "blocks.1.attn.z",
        "op": "mean",
        "from": {"text": ["ABCDEFABCDE", "QWERTYQWERT"]},
    }
    select = ["blocks.1.attn.z"]
    answer = post(client, INDUCTION, interventions=[change], select=select)
    each = [
        post(client, INDUCTION | {"input": {"text": text}}, select=select)["tensors"]
        for text in change["from"]["text"]  # type: ignore[index]
    ]
    mean = sum(data(one)["blocks.1.attn.z"] for one in each) / 2
    assert np.abs(data(answer["tensors"])["blocks.1.attn.z"] - mean).max() < 2e-6  # float32


# What is refused.

FAULTS = {
    "derived": ({"stage": "attn.head_out", "op": "zero"}, "/stage", "read_only"),
    "absent": ({"stage": "pos_embed", "op": "zero"}, "/stage", "stage_absent"),
    "head": (
        {"stage": "z", "op": "zero", "where": {"head": [0, 4]}},
        "/where/head/1",
        "index_out_of_range",
    ),
    "shape": ({"stage": "z", "op": "set", "value": [1, 2]}, "/value", "shape_mismatch"),
    "value": ({"stage": "z", "op": "scale"}, "", "value_needed"),
    "from": ({"stage": "z", "op": "patch"}, "", "from_needed"),
    "length": (
        {"stage": "blocks.0.attn.z", "op": "patch", "from": {"text": "AB"}},
        "/from",
        "donor_mismatch",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_told_at_its_place(
    client: TestClient, assert_problem: AssertProblem, name: str
) -> None:
    change, pointer, code = FAULTS[name]
    fine = {"stage": "z", "op": "zero"}
    body = assert_problem(
        client.post("/v1/trace", json=INDUCTION | {"interventions": [fine, change]}),
        "invalid-intervention",
    )
    (fault,) = body["errors"]
    assert (fault["pointer"], fault["code"]) == (f"/interventions/1{pointer}", code)


def test_faults_of_all_interventions_come_at_once(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    changes = [change for name, (change, _, _) in FAULTS.items() if name != "length"]
    response = client.post("/v1/trace", json=INDUCTION | {"interventions": changes})
    body = assert_problem(response, "invalid-intervention")
    assert body["errors_total"] == len(changes)


@pytest.mark.parametrize(
    ("other", "pointer"),
    [
        ({"text": "qwerty"}, "/text"),
        ({"tensor": [[1.0, 2.0]]}, "/tensor"),
        ({"token_ids": [99]}, "/token_ids/0"),
        ({"text": "AB", "key_mask": [True]}, "/key_mask"),
    ],
)
def test_fault_of_another_input_stands_in_from(
    client: TestClient, assert_problem: AssertProblem, other: dict[str, object], pointer: str
) -> None:
    changes = [{"stage": "z", "op": "zero"}, {"stage": "z", "op": "patch", "from": other}]
    response = client.post("/v1/trace", json=INDUCTION | {"interventions": changes})
    body = assert_problem(response, "invalid-input")
    assert body["errors"][0]["pointer"] == f"/interventions/1/from{pointer}"


def test_measure_without_an_answer_is_unanswerable(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    response = client.post(
        "/v1/trace", json=INDUCTION | {"measures": [{"logit": 0}, {"logit": 26}]}
    )
    body = assert_problem(response, "unanswerable")
    assert body["errors"][0]["pointer"] == "/measures/1/logit"


# What it costs.


def test_cost_counts_every_run(client: TestClient) -> None:
    select = {"select": ["logits"], "clean": False}
    change = {"stage": "blocks.1.attn.z", "op": "zero"}
    plain = post(client, INDUCTION, select)["cost"]
    alone = post(client, INDUCTION, select, interventions=[change])["cost"]
    both = post(client, INDUCTION, select, interventions=[change], clean=True)["cost"]
    all_ = post(client, INDUCTION, select, interventions=[change], measures=[{"logit": 0}])["cost"]
    assert alone["flops"] == plain["flops"]
    assert both["flops"] == 2 * plain["flops"]
    assert all_["flops"] == 3 * plain["flops"]
    assert both["elements"] == 3 * plain["elements"] == 3 * alone["elements"]
    assert plain["bytes"] < alone["bytes"] < both["bytes"]


def test_answer_of_three_times_the_numbers_is_held_to_the_limit(
    make_client: MakeClient, assert_problem: AssertProblem
) -> None:
    asked = INDUCTION | {"select": ["logits"], "interventions": [{"stage": "z", "op": "zero"}]}
    client = make_client(answer_elements=2 * 11 * 26)
    body = assert_problem(client.post("/v1/trace", json=asked), "beyond-limit")
    assert body["limit"] == {"name": "answer_elements", "value": 572, "got": 858}
    assert '"clean": false' in body["advice"]["text"]
    assert client.post("/v1/trace", json=asked | {"clean": False}).status_code == 200


@pytest.mark.parametrize("limit", ["work_flops", "memory_bytes"])
def test_runs_beyond_a_limit_are_refused_before_any_weight_is_made(
    make_client: MakeClient,
    assert_problem: AssertProblem,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("no weight is made")

    cost = post(make_client(), WRITTEN, select=["logits"])["cost"]
    other = [{"token_ids": [1, 2, at]} for at in range(8)]
    changes = [{"stage": "blocks.0.attn.z", "op": "patch", "from": one} for one in other]
    most = {"work_flops": 2 * cost["flops"], "memory_bytes": cost["bytes"] + (33 << 20)}[limit]
    client = make_client(**{limit: most})
    assert client.post("/v1/trace", json=WRITTEN | {"select": ["logits"]}).status_code == 200
    monkeypatch.setattr(initial, "seeded", never)
    asked = WRITTEN | {"select": ["logits"], "interventions": changes}
    if limit == "memory_bytes":
        asked |= {"input": {"token_ids": [1] * 2000}, "select": [], "clean": False}
        asked["interventions"] = [{"stage": "attn.scores", "op": "zero"}]
    body = assert_problem(client.post("/v1/trace", json=asked), "beyond-limit")
    assert body["limit"]["name"] == limit


def test_where_of_the_answer_counts_from_the_start(client: TestClient) -> None:
    change = {"stage": "A", "op": "zero", "where": {"position": [-1], "block": [-1]}}
    answer = post(client, INDUCTION, interventions=[change], select=[])
    assert answer["interventions"] == [
        {"stage": "blocks.1.attn.pattern", "op": "zero", "where": {"position": [10]}}
    ]


def test_changes_that_overflow_are_told_as_infinities(client: TestClient) -> None:
    change = {"stage": "logits", "op": "scale", "value": 3e38}
    answer = post(client, INDUCTION, interventions=[change])
    assert "nonfinite" in answer["tensors"]["logits"]


def test_same_request_gets_the_same_bytes(client: TestClient) -> None:
    change = {"stage": "A", "op": "mean", "where": {"head": [0]}}
    asked = INDUCTION | {"interventions": [change], "measures": [{"logit": "Y"}]}
    assert (
        client.post("/v1/trace", json=asked).content == client.post("/v1/trace", json=asked).content
    )
