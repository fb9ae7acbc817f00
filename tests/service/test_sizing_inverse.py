"""POST /v1/sizing/inverse, from bytes to bytes."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter
from starlette.testclient import TestClient

import sized
from schemas.sizing.inverse import InverseAnswer
from service.example_bodies import inverse as bodies

AssertProblem = Callable[..., dict[str, Any]]
URL = "/v1/sizing/inverse"
GPT2 = bodies.REQUESTS["gpt2"]["value"]


def asked(client: TestClient, **body: object) -> Any:  # noqa: ANN401 - plain JSON
    response = client.post(URL, json=body)
    assert response.status_code == 200, response.text
    TypeAdapter(InverseAnswer).validate_json(response.content, strict=True)
    return response.json()


def truth(name: str) -> list[tuple[int, int, int]]:
    (found,) = [t for t in sized.extra_truths().values() if t["name"].startswith(name)]
    return [(x["n_layers"], x["d_model"], x["params"]) for x in found["expected"]]


def sizes(found: Any) -> list[tuple[int, int, int]]:  # noqa: ANN401 - plain JSON
    return [(x["n_layers"], x["d_model"], int(x["value"]["exact"])) for x in found["best"]]


@pytest.mark.parametrize("name", bodies.REQUESTS)
def test_an_example_is_answered_as_described(client: TestClient, name: str) -> None:
    asked(client, **bodies.REQUESTS[name]["value"])


def test_the_answer_that_is_shown_is_the_answer(client: TestClient) -> None:
    assert asked(client, **GPT2) == dict(bodies.ANSWER)


def test_five_best_in_gpt2s_style_are_the_known_ones(client: TestClient) -> None:
    found = asked(client, **{**GPT2, "best": 5})
    assert sizes(found) == truth("GPT-2 style")
    assert found["unique"] is False
    assert found["best"][0]["relative_error"] == pytest.approx(-0.0035, abs=5e-5)


def test_five_best_in_llamas_style_are_the_known_ones(client: TestClient) -> None:
    assert sizes(asked(client, **bodies.REQUESTS["llama"]["value"])) == truth("Llama style")


@pytest.mark.parametrize("name", [name for name in bodies.REQUESTS if name != "none"])
def test_every_found_config_is_a_request_that_is_sized_alike(client: TestClient, name: str) -> None:
    found = asked(client, **bodies.REQUESTS[name]["value"])
    for hit in found["best"]:
        body = {"model": {"config": hit["config"]}, "ask": ["parameters"]}
        answer = client.post("/v1/sizing", json=body).json()
        assert answer["parameters"]["total"] == hit["parameters"]
        assert answer["model"]["config"] == hit["config"]


def test_errors_are_signed_and_the_sides_enclose_the_target(client: TestClient) -> None:
    found = asked(client, **{**GPT2, "best": 20})
    for hit in found["best"]:
        assert hit["error"]["value"] == hit["value"]["value"] - 1300000000
        assert hit["relative_error"] == hit["error"]["value"] / 1300000000
    errors = [abs(hit["error"]["value"]) for hit in found["best"]]
    assert errors == sorted(errors)
    below = max(x["value"]["value"] for x in found["best"] if x["error"]["value"] <= 0)
    above = min(x["value"]["value"] for x in found["best"] if x["error"]["value"] >= 0)
    assert found["nearest_below"]["value"]["value"] == below
    assert found["nearest_above"]["value"]["value"] == above


def test_inverse_of_a_presets_parameters_contains_the_preset(client: TestClient) -> None:
    config = {"aspect": {"least": 12, "most": 256}, "d_model": {"multiple_of": 1}}
    for preset in ("gpt2", "bert-base", "stories15m", "smollm2-135m", "deepseek-v3", "gemma-3-27b"):
        model = {"preset": preset}
        told = client.post("/v1/sizing", json={"model": model, "ask": ["parameters"]}).json()
        held = int(told["parameters"]["total"]["exact"])
        found = asked(client, target={"parameters": held}, style=model, **config)
        assert told["model"]["config"] in [hit["config"] for hit in found["best"]], preset
        assert found["nearest_below"] == found["nearest_above"]


def test_an_empty_grid_is_answered_with_a_reason_and_the_next_widths(client: TestClient) -> None:
    found = asked(client, **bodies.REQUESTS["none"]["value"])
    assert (found["best"], found["nearest_below"], found["nearest_above"]) == ([], None, None)
    assert "64" in found["reason"]
    assert (found["grid"]["width_below"], found["grid"]["width_above"]) == (64, 128)


def test_a_target_beyond_the_grid_says_which_side_is_missing(client: TestClient) -> None:
    found = asked(client, **{**GPT2, "target": {"parameters": 1}})
    assert found["nearest_below"] is None
    assert found["nearest_above"] == found["best"][0]
    assert "grid.smallest" in found["reason"]
    assert found["grid"]["smallest"]["value"] == found["best"][0]["value"]
    narrow = {"multiple_of": 128, "most": 256}
    found = asked(client, **{**GPT2, "d_model": narrow})
    assert found["nearest_above"] is None
    assert "grid.largest" in found["reason"]


HOSTILE = {
    "no target": ({"target": {}}, "/target", "exactly_one"),
    "two targets": (
        {"target": {"parameters": 1, "weight_bytes": 1}},
        "/target",
        "exactly_one",
    ),
    "dtype of parameters": (
        {"target": {"parameters": 1, "dtype": "int8"}},
        "/target",
        "dtype",
    ),
    "zero": ({"target": {"parameters": 0}}, "/target/parameters", "greater_than_equal"),
    "huge": ({"target": {"parameters": 10**19}}, "/target/parameters", "less_than_equal"),
    "a float": ({"target": {"parameters": 1.5}}, "/target/parameters", "int_type"),
    "bounds": ({"d_model": {"least": 256, "most": 128}}, "/d_model", "bounds"),
    "aspect": ({"aspect": {"least": 129, "most": 128}}, "/aspect", "bounds"),
    "multiple": ({"d_model": {"multiple_of": 0}}, "/d_model/multiple_of", "greater_than_equal"),
    "best": ({"best": 21}, "/best", "less_than_equal"),
    "d_head": ({"d_head": 0}, "/d_head", "greater_than_equal"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_value_is_refused_where_it_stands(
    client: TestClient, assert_problem: AssertProblem, name: str
) -> None:
    change, pointer, code = HOSTILE[name]
    found = assert_problem(client.post(URL, json={**GPT2, **change}), "invalid-request")
    assert [(x["pointer"], x["code"]) for x in found["errors"]] == [(pointer, code)]


@pytest.mark.parametrize("ratio", ["0", "1/0", "8/3/2", "-1", "2.5", "9999999", "", "١"])
def test_a_ratio_that_is_none_is_refused(
    client: TestClient, assert_problem: AssertProblem, ratio: str
) -> None:
    body = {**GPT2, "d_ff": {"ratio": ratio}}
    found = assert_problem(client.post(URL, json=body), "invalid-request")
    assert {x["pointer"] for x in found["errors"]} == {"/d_ff/ratio"}


UNANSWERABLE = {
    "latent heads": (
        {"style": {"preset": "deepseek-v3"}, "d_head": 64},
        ["/d_head"],
        "not_of_this_style",
    ),
    "no cache": (
        {"style": {"preset": "bert-base"}, "target": {"kv_bytes_per_token": 9}},
        ["/target/kv_bytes_per_token"],
        "no_cache",
    ),
    "widths": (
        {
            "style": {"preset": "llama-2-7b"},
            "d_model": {"multiple_of": 1},
            "d_head": 2,
            "aspect": {"least": 1, "most": 1 << 20},
        },
        ["/d_model"],
        "too_many_widths",
    ),
    "odd turn": (
        {"style": {"preset": "llama-2-7b"}, "d_head": 65},
        ["/d_head"],
        "not_of_this_style",
    ),
}


@pytest.mark.parametrize("name", UNANSWERABLE)
def test_what_a_style_cannot_have_is_refused_where_it_stands(
    client: TestClient, assert_problem: AssertProblem, name: str
) -> None:
    change, pointers, code = UNANSWERABLE[name]
    found = assert_problem(client.post(URL, json={**GPT2, **change}), "unanswerable")
    assert [x["pointer"] for x in found["errors"]] == pointers
    assert {x["code"] for x in found["errors"]} == {code}


def test_a_fault_of_the_style_stands_below_style(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    style = {"preset": "gpt2", "config": {"attention": {"n_kv_heads": 5}}}
    found = assert_problem(client.post(URL, json={**GPT2, "style": style}), "config-rule")
    assert [x["pointer"] for x in found["errors"]] == ["/style/config/attention/n_kv_heads"]
    found = assert_problem(
        client.post(URL, json={**GPT2, "style": {"name": "no"}}), "unknown-model"
    )
    assert found["errors"][0]["pointer"] == "/style/name"
