"""A plan against the answer that it is the plan of, in every form; and nothing is run for it."""

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any

import httpx2 as httpx
import numpy as np
import pytest
import safetensors.numpy
from starlette.testclient import TestClient

import runs
from compute.types import Selected
from planning import CHANGED, FORMS, LONG, plan_of, post
from service.forms.form import JSON, LINES, SAFETENSORS

Json = dict[str, Any]
MakeClient = Callable[..., TestClient]
AssertProblem = Callable[..., Json]

SEEDS, AT_ONCE = 200, 50


def request_of(seed: int) -> Json:
    """A random config with seeded weights, a random input and selection."""
    case, rng = runs.case_of(seed), np.random.default_rng(seed)
    asked: Json = {
        "model": {"config": case.config},
        "input": listed(case.inputs),
        "dtype": "float64" if seed % 2 else "float32",
    }
    if seed % 5:
        asked["select"] = [item(one) for one in runs.random_selection(rng, case)]
    return asked


def listed(inputs: Mapping[str, Any]) -> Json:
    return {
        name: listed(value) if isinstance(value, Mapping) else value.tolist()
        for name, value in inputs.items()
    }


def item(one: Selected) -> Json:
    where = {word: list(indices) for word, indices in one.where.items()}
    return {"name": one.name, **where, "summary": one.summary}


def stages_of(tensors: Json) -> Iterator[Json]:
    """The stages of an answer as a plan tells them, but for what they are made of."""
    for name, tensor in tensors.items():
        summed = "summary" in tensor
        elements = prod(tensor["shape"]) * (5 if summed else 1)
        width = 8 if summed and tensor["dtype"] == "int64" else np.dtype(tensor["dtype"]).itemsize
        yield {
            "name": name,
            **{key: tensor[key] for key in ("axes", "shape", "dtype")},
            "elements": elements,
            "bytes": elements * width,
            **({"index": tensor["index"]} if "index" in tensor else {}),
            **({"summary": True} if summed else {}),
        }


@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_plan_is_what_is_answered_in_every_form(client: TestClient, first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        asked = request_of(seed)
        plan = plan_of(client, asked)
        answers = {form: post(client, asked, form) for form in FORMS}
        nested, base64 = answers["json"].json(), answers["base64"].json()
        body = safetensors.numpy.load(answers["safetensors"].content)
        told = [{k: v for k, v in x.items() if k != "made_of"} for x in plan["stages"]]
        assert told == list(stages_of(nested["tensors"])), seed
        assert told == list(stages_of(base64["tensors"])), seed
        assert plan["absent"] == nested["absent"]
        assert plan["elements"] == nested["cost"]["elements"]
        assert plan["elements"] == sum(x["elements"] for x in told)
        assert plan["flops"] == nested["cost"]["flops"]
        assert plan["bytes"]["tensors"] == sum(x.nbytes for x in body.values()), seed
        assert {x["name"]: x["bytes"] for x in told if "summary" not in x} == {
            name: values.nbytes for name, values in body.items()
        }
        assert plan["bytes"]["summaries"] == sum(x["bytes"] for x in told if "summary" in x)
        for form, size in plan["bytes"]["answer"].items():
            assert len(answers[form].content) <= size["at_most"], (seed, form)
            assert size["about"] <= size["at_most"]


def test_the_planned_requests_meet_slices_summaries_and_derived_stages(client: TestClient) -> None:
    stages = [x for seed in range(60) for x in plan_of(client, request_of(seed))["stages"]]
    for key in ("index", "summary", "made_of"):
        assert sum(key in x for x in stages) > 10
    assert any(x["dtype"] == "int64" for x in stages)
    assert any(x["name"].startswith("encoder.") for x in stages)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_answers_are_about_as_long_as_planned(client: TestClient, form: str, dtype: str) -> None:
    asked = {**LONG, "dtype": dtype}
    told = plan_of(client, asked)["bytes"]["answer"][form]["about"]
    length = len(post(client, asked, form).content)
    assert told == pytest.approx(length, rel=0.15 if form in ("json", "lines") else 0.03)


@pytest.mark.parametrize("form", FORMS)
def test_no_answer_is_longer_than_planned_where_nothing_is_finite(
    client: TestClient, form: str
) -> None:
    row = [3.4e38, 0.1, -3.4e38]
    asked = {
        "model": {
            "config": {"d_model": 3, "attention": {"n_heads": 1}, "norm": {"kind": "none"}},
            "weights": {"init": "identity"},
        },
        "input": {"tensor": [row, [-x for x in row]] * 60},
        "select": ["*", "attn.dots"],
    }
    answer = post(client, asked, form)
    assert b"+inf" in answer.content
    for digits in (None, 3):
        plan = plan_of(client, {**asked, "input": asked["input"]}, digits=digits)
        assert len(answer.content) <= plan["bytes"]["answer"][form]["at_most"]


def test_answer_with_digits_is_not_longer_than_planned(client: TestClient) -> None:
    for digits in (1, 5, 15):
        asked = {**LONG, "select": ["norm1.scale", "attn.z"], "format": {"digits": digits}}
        response = client.post("/v1/trace", json=asked)
        plan = plan_of(client, asked, digits=digits)
        assert plan["form"] == {"media": JSON, "encoding": "nested", "digits": digits}
        assert len(response.content) <= plan["bytes"]["answer"]["json"]["at_most"]


@pytest.mark.parametrize("form", FORMS)
def test_plan_comes_in_every_form(client: TestClient, form: str) -> None:
    media, said = FORMS[form]
    body = {**LONG, "format": said, "dry_run": True}
    response = client.post("/v1/trace", json=body, headers={"Accept": media})
    assert response.headers["content-type"].startswith(media)
    text = response.text.replace("\\", "")
    assert f'"media":"{media}"' in text
    assert '"kept":["embed",' in text


# What is refused, and what is told.

LIMITS = ("answer_elements", "binary_elements", "memory_bytes", "work_flops")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", LIMITS)
def test_plan_fits_where_the_request_is_answered(
    make_client: MakeClient, assert_problem: AssertProblem, name: str, form: str
) -> None:
    media, said = FORMS[form]
    headers, asked = {"Accept": media}, {**LONG, "format": said}
    dry = {**asked, "dry_run": True}

    def answered(most: int, body: Json) -> httpx.Response:
        settings = {name: most}
        return make_client(**settings).post("/v1/trace", json=body, headers=headers)

    elsewhere = {"json": "binary_elements"}.get(form, "answer_elements")
    if name == elsewhere:
        assert answered(1, asked).status_code == 200
        return
    refused = assert_problem(answered(1, asked), "beyond-limit")
    needed = refused["limit"]["got"]
    assert refused["limit"]["name"] == name
    assert answered(needed, asked).status_code == 200
    problem = assert_problem(answered(needed - 1, asked), "beyond-limit")
    if form in ("json", "base64"):
        assert answered(needed, dry).json()["plan"]["fits"] is True
        plan = answered(needed - 1, dry).json()["plan"]
        assert (plan["fits"], plan["broken"]) == (False, problem["limit"])
        assert plan["advice"] == problem["advice"]


def test_memory_is_what_is_weighed(make_client: MakeClient, assert_problem: AssertProblem) -> None:
    for said in ({}, {"encoding": "base64"}):
        plan = plan_of(make_client(), LONG, **said)
        refused = make_client(memory_bytes=1).post("/v1/trace", json={**LONG, "format": said})
        assert assert_problem(refused, "beyond-limit")["limit"]["got"] == plan["memory"]


def test_advice_names_the_form_in_which_all_of_it_fits(
    make_client: MakeClient, assert_problem: AssertProblem
) -> None:
    client = make_client(answer_elements=1000)
    advice = assert_problem(client.post("/v1/trace", json=LONG), "beyond-limit")["advice"]
    assert SAFETENSORS in advice["text"]
    assert advice["select"]
    assert post(client, LONG, "safetensors").content
    both = make_client(answer_elements=1000, binary_elements=1000)
    advice = assert_problem(both.post("/v1/trace", json=LONG), "beyond-limit")["advice"]
    assert "text" not in advice


def test_a_stream_needs_less_memory_and_the_advice_says_so(
    make_client: MakeClient, assert_problem: AssertProblem
) -> None:
    config = {"d_model": 64, "n_layers": 24, "attention": {"n_heads": 8}}
    asked = {"model": {"config": config}, "input": {"tensor": [[0.5] * 64] * 200}}
    most = {"answer_elements": 1 << 25, "memory_bytes": 100 << 20}
    client = make_client(**most)
    body = assert_problem(client.post("/v1/trace", json=asked), "beyond-limit")
    assert body["limit"]["name"] == "memory_bytes"
    assert LINES in body["advice"]["text"]
    refused = client.post("/v1/trace", json=asked, headers={"Accept": SAFETENSORS})
    assert LINES in assert_problem(refused, "beyond-limit")["advice"]["text"]
    assert post(client, asked, "lines").content


def test_calls_that_answer_json_alone_are_told_no_other_form(
    make_client: MakeClient, assert_problem: AssertProblem
) -> None:
    client = make_client(answer_elements=100)
    asked = {"a": LONG, "b": LONG}
    problem = assert_problem(client.post("/v1/compare", json=asked), "beyond-limit")
    assert SAFETENSORS not in str(problem["advice"])
    assert LINES not in str(problem["advice"])


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"select": ["nothing_so_called"]}, "invalid-selection"),
        ({"input": {"token_ids": [100]}}, "invalid-input"),
        ({"model": {"config": {"d_model": 7, "attention": {"n_heads": 2}}}}, "config-rule"),
        ({"model": {"name": "no-such-model"}}, "unknown-model"),
        ({"dry_run": 1}, "invalid-request"),
        ({"interventions": [{"stage": "attn.scores", "op": "nothing"}]}, "invalid-request"),
        ({"interventions": [{"stage": "A", "op": "zero", "where": {"head": [9]}}]}, None),
        ({"measures": [{"logit": 3, "position": 1000}]}, "unanswerable"),
    ],
)
def test_faults_are_those_of_the_request_that_is_run(
    client: TestClient, assert_problem: AssertProblem, changed: Json, code: str | None
) -> None:
    run = client.post("/v1/trace", json={**LONG, **changed})
    dry = client.post("/v1/trace", json={**LONG, "dry_run": True, **changed})
    found = assert_problem(dry, code or "invalid-intervention")
    assert found | {"instance": ""} == run.json() | {"instance": ""}


def test_weights_that_do_not_fit_are_refused_too(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    tensors = {"blocks.0.attn.W_O": [[1.0]]}
    asked = {**LONG, "dry_run": True}
    asked["model"] = {**asked["model"], "weights": {"tensors": tensors}}
    assert_problem(client.post("/v1/trace", json=asked), "shape-mismatch")


def test_sizes_beyond_limits_are_refused(
    make_client: MakeClient, assert_problem: AssertProblem
) -> None:
    response = make_client(positions=5).post("/v1/trace", json={**LONG, "dry_run": True})
    assert assert_problem(response, "beyond-limit")["limit"]["name"] == "positions"


# Interventions.


@pytest.mark.parametrize("clean", [True, False])
def test_plan_of_interventions_is_of_all_runs(client: TestClient, clean: bool) -> None:
    asked = {**CHANGED, "clean": clean}
    plan = plan_of(client, asked)
    answer = post(client, asked, "json").json()
    body = post(client, asked, "safetensors").content
    assert plan["elements"] == answer["cost"]["elements"]
    assert plan["flops"] == answer["cost"]["flops"]
    assert plan["bytes"]["tensors"] == sum(x.nbytes for x in safetensors.numpy.load(body).values())
    assert [x["name"] for x in plan["stages"]] == list(answer["tensors"])
    assert plan["runs"] == 4  # the other input's, the clean, the total and the direct one
    for form, size in plan["bytes"]["answer"].items():
        assert len(post(client, asked, form).content) <= size["at_most"], form


def test_plan_of_the_largest_request_is_quick_and_exact(client: TestClient) -> None:
    config = {
        "d_model": 8192,
        "n_layers": 64,
        "attention": {"n_heads": 64},
        "vocab": 1 << 18,
        "ffn": {"d_ff": 1 << 20},
    }
    ids = [[0] * 2000] * 64
    plan = plan_of(client, {"model": {"config": config}, "input": {"token_ids": ids}})
    n, d, f = 2000, 8192, 1 << 20
    block = n * (4 * d * d + 2 * d * f) + 2 * n * n * d
    head_out = 64 * n * d * d
    assert int(plan["flops"]) == 2 * 64 * (64 * block + n * d * (1 << 18)) + 2 * 64 * head_out
    assert type(plan["flops"]) is str
    assert plan["fits"] is False
