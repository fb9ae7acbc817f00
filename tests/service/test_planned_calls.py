"""Plans of the calls beside the trace; and for no plan anything is run."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from starlette.testclient import TestClient

from compute import driver
from compute.block_weights import Bench
from planning import CHANGED, FORMS, plan_of
from service.forms.form import SAFETENSORS

Json = dict[str, Any]
MakeClient = Callable[..., TestClient]
AssertProblem = Callable[..., Json]

TOY = {"model": {"name": "letter-sort"}, "input": {"text": "CAB"}}
CALLS: Mapping[str, Json] = {
    "contributions": {**TOY, "of": "blocks.1.resid_post", "by": "head", "vectors": True},
    "subspaces": {"model": TOY["model"], "ask": ["rank", "basis", "composition"]},
    "sweep": {
        "model": TOY["model"],
        "clean": TOY["input"],
        "measure": {"logit": "A"},
        "stage": "attn.z",
        "op": "zero",
        "over": ["block", "head"],
    },
    "decode": {**TOY, "steps": 3},
    "jacobian": {**TOY, "of": "blocks.1.resid_post", "by": "blocks.0.resid_pre"},
    "jacobian, gradients": {**TOY, "measure": {"logit": "A"}, "gradients": ["resid_post"]},
    "rope": {"spectrum": {"d_head": 8}, "positions": [3, 5]},
    "rope, model": {"model": {"preset": "llama-2-7b"}, "positions": [3, 5]},
}


@pytest.mark.parametrize("name", CALLS)
def test_other_calls_tell_what_they_need(
    make_client: MakeClient, assert_problem: AssertProblem, name: str
) -> None:
    call, asked = name.partition(",")[0], CALLS[name]
    plan = plan_of(make_client(), asked, call)
    assert plan["fits"] is True
    assert (plan["broken"], plan["advice"]) == (None, None)
    assert sum(part["elements"] for part in plan["parts"]) == plan["elements"] > 0
    refused = make_client(memory_bytes=1).post(f"/v1/{call}", json=asked)
    problem = assert_problem(refused, "beyond-limit")
    assert problem["estimate"]["bytes"] == plan["memory"]
    assert problem["estimate"]["elements"] == plan["elements"]
    assert problem["estimate"]["parts"] == plan["parts"]
    dry = make_client(memory_bytes=1).post(f"/v1/{call}", json={**asked, "dry_run": True})
    found = dry.json()["plan"]
    assert found["broken"] == problem["limit"]
    assert found["advice"] == problem["advice"]
    answer = make_client().post(f"/v1/{call}", json=asked).json()
    if "cost" in answer:
        assert {key: answer["cost"][key] for key in ("flops", "elements")} == {
            key: plan[key] for key in ("flops", "elements")
        }


@pytest.mark.parametrize("name", [name for name in CALLS if name != "rope, model"])
def test_other_calls_are_bounded_by_their_forms_limit(
    make_client: MakeClient, assert_problem: AssertProblem, name: str
) -> None:
    call, asked = name.partition(",")[0], CALLS[name]
    for form, (media, said) in FORMS.items():
        limit = "answer_elements" if form == "json" else "binary_elements"
        client, body = make_client(**{limit: 1}), {**asked, "format": said}
        refused = client.post(f"/v1/{call}", json=body, headers={"Accept": media})
        problem = assert_problem(refused, "beyond-limit")
        assert problem["limit"]["name"] == limit
        assert (SAFETENSORS in problem["advice"]["text"]) == (form == "json")


@pytest.mark.parametrize("name", ["trace", *CALLS])
def test_nothing_is_run_and_no_weight_is_made(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("nothing is run")

    monkeypatch.setattr(Bench, "take", never)
    monkeypatch.setattr(driver, "stream", never)
    asked = CHANGED if name == "trace" else CALLS[name]
    assert plan_of(client, asked, name.partition(",")[0])["fits"] is True
