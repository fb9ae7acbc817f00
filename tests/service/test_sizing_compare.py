"""POST /v1/sizing/compare, from bytes to bytes."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from schemas.sizing.compare import SizingCompareAnswer
from service.example_bodies import sizing_compare as bodies

AssertProblem = Callable[..., dict[str, Any]]
URL = "/v1/sizing/compare"
SECTIONS = ("parameters", "flops", "kv_cache", "weights")


def asked(client: TestClient, **body: object) -> Any:  # noqa: ANN401 - plain JSON
    response = client.post(URL, json=body)
    assert response.status_code == 200, response.text
    TypeAdapter(SizingCompareAnswer).validate_json(response.content, strict=True)
    return response.json()


def named(*presets: str) -> list[dict[str, Any]]:
    return [{"label": f"m{at}", "model": {"preset": x}} for at, x in enumerate(presets)]


@pytest.mark.parametrize("name", bodies.REQUESTS)
def test_an_example_is_answered_as_described(client: TestClient, name: str) -> None:
    asked(client, **bodies.REQUESTS[name]["value"])


def test_the_answer_that_is_shown_is_the_answer(client: TestClient) -> None:
    assert asked(client, **bodies.REQUESTS["distilled"]["value"]) == dict(bodies.ANSWER)


def test_a_model_compared_with_itself_differs_in_nothing(client: TestClient) -> None:
    found = asked(client, models=named("gpt2", "gpt2"))
    assert found["changes"] == [{"label": "m1", "fields": []}]
    for section in SECTIONS:
        for total in found[section]:
            assert (total["difference"]["value"], total["ratio"]) == (0, 1.0)
            assert {(x["difference"], x["ratio"]) for x in total["parts"]} == {(0, 1.0)}


def test_totals_are_those_of_a_sizing_and_parts_sum_to_them(client: TestClient) -> None:
    presets = ("gpt2", "smollm2-135m", "deepseek-v3", "gemma-3-27b", "mixtral-8x7b")
    found = asked(client, models=named(*presets), tokens=512, batch=3, dtype="bfloat16")
    for at, preset in enumerate(presets):
        body = {"model": {"preset": preset}, "tokens": 512, "batch": 3, "dtype": "bfloat16"}
        alone = client.post("/v1/sizing", json={**body, "ask": list(SECTIONS)}).json()
        totals = {
            "parameters": alone["parameters"]["total"],
            "flops": alone["flops"]["forward"]["total"],
            "weights": alone["weights"]["total"],
            "kv_cache": alone["kv_cache"]["allocation"]["total"],
        }
        for section, total in totals.items():
            mine = found[section][at]
            assert mine["total"]["exact"] == total["exact"], (preset, section)
            exact = sum(int(part["exact"]) for part in mine["parts"])
            assert exact == int(mine["difference"]["exact"])
            first = found[section][0]["total"]["exact"]
            assert exact == int(total["exact"]) - int(first)


def test_what_fields_move_sums_to_each_difference(client: TestClient) -> None:
    found = asked(client, models=named("gpt2", "gemma-3-27b", "deepseek-v3", "gpt2-xl"))
    for at, changes in enumerate(found["changes"], start=1):
        for section in SECTIONS:
            moved = [
                int(move["difference"]["exact"])
                for field in changes["fields"]
                for move in field["moves"]
                if move["of"] == section
            ]
            assert sum(moved) == int(found[section][at]["difference"]["exact"])


def test_a_cause_says_the_field_and_what_it_moves(client: TestClient) -> None:
    found = asked(client, **bodies.REQUESTS["grouped"]["value"])
    (field,) = found["changes"][0]["fields"]
    assert (field["field"], field["from"], field["to"]) == ("attention.n_kv_heads", 3, 9)
    assert field["cause"].startswith("attention.n_kv_heads 3 → 9: +13271040 parameters in blocks.")
    moved = {move["of"]: move["parts"] for move in field["moves"]}
    assert moved["flops"] == ["blocks.attn.W_K", "blocks.attn.W_V"]
    assert found["kv_cache"][1]["ratio"] == 3.0


def test_windows_are_the_two_right_answers(client: TestClient) -> None:
    config = {"attention": {"window": 16}}
    models = [
        {"label": "all", "model": {"preset": "gpt2"}},
        {"label": "window", "model": {"preset": "gpt2", "config": config}},
    ]
    body = {"models": models, "ask": ["kv_cache"], "tokens": 512}
    assert asked(client, **body)["kv_cache"][1]["ratio"] == 1.0
    assert asked(client, **body, windows="lower_bound")["kv_cache"][1]["ratio"] == 16 / 512


def test_one_number_of_positions_serves_all_models(client: TestClient) -> None:
    found = asked(client, models=named("llama-2-7b", "bert-base", "vit-b-16"), ask=["flops"])
    assert [model["tokens"] for model in found["models"]] == [512, 512, 197]


def test_what_one_model_does_not_have_is_absent_and_told(client: TestClient) -> None:
    found = asked(client, models=named("gpt2", "bert-base"))
    assert found["kv_cache"] is None
    assert "attends" in found["absent"]["kv_cache"]


def test_what_is_not_there_is_refused_where_it_is_asked_for(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    body = {"models": named("gpt2", "bert-base"), "ask": ["kv_cache"]}
    found = assert_problem(client.post(URL, json=body), "unanswerable")
    assert [(x["pointer"], x["code"]) for x in found["errors"]] == [("/ask", "no_cache")]


def test_more_positions_than_a_table_has_are_refused(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    body = {"models": named("llama-2-7b", "gpt2"), "tokens": 1025}
    found = assert_problem(client.post(URL, json=body), "unanswerable")
    assert [(x["pointer"], x["code"]) for x in found["errors"]] == [("/tokens", "beyond_positions")]


@pytest.mark.parametrize("at", [0, 1])
def test_a_fault_of_a_model_stands_below_that_model(
    client: TestClient, assert_problem: AssertProblem, at: int
) -> None:
    models = named("gpt2", "gpt2")
    models[at]["model"]["config"] = {"attention": {"n_kv_heads": 5}}
    found = assert_problem(client.post(URL, json={"models": models}), "config-rule")
    pointer = f"/models/{at}/model/config/attention/n_kv_heads"
    assert [x["pointer"] for x in found["errors"]] == [pointer]
    models[at]["model"] = {"name": "nobody"}
    found = assert_problem(client.post(URL, json={"models": models}), "unknown-model")
    assert found["errors"][0]["pointer"] == f"/models/{at}/model/name"


HOSTILE = {
    "one": ({"models": named("gpt2")}, "/models"),
    "nine": ({"models": named(*["gpt2"] * 9)}, "/models"),
    "labels": ({"models": [*named("gpt2"), *named("gpt2")]}, ""),
    "a label": (
        {"models": [*named("gpt2"), {**named("gpt2")[0], "label": "a b"}]},
        "/models/1/label",
    ),
    "twice": ({"models": named("gpt2", "gpt2"), "ask": ["flops", "flops"]}, ""),
    "nothing": ({"models": named("gpt2", "gpt2"), "ask": []}, "/ask"),
    "tokens": ({"models": named("gpt2", "gpt2"), "tokens": 0}, "/tokens"),
    "batch": ({"models": named("gpt2", "gpt2"), "batch": 1 << 41}, "/batch"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_value_is_refused_where_it_stands(
    client: TestClient, assert_problem: AssertProblem, name: str
) -> None:
    body, pointer = HOSTILE[name]
    found = assert_problem(client.post(URL, json=body), "invalid-request")
    assert [x["pointer"] for x in found["errors"]] == [pointer]
