"""POST /v1/sizing/reconcile, from bytes to bytes."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter
from starlette.testclient import TestClient

import sized
from evaluating import evaluated
from schemas.presets import PRESETS
from schemas.sizing.reconcile import ReconcileAnswer
from service.example_bodies import reconcile as bodies

AssertProblem = Callable[..., dict[str, Any]]
URL = "/v1/sizing/reconcile"
GPT2 = {"preset": "gpt2"}


def asked(client: TestClient, **body: object) -> Any:  # noqa: ANN401 - plain JSON
    response = client.post(URL, json=body)
    assert response.status_code == 200, response.text
    TypeAdapter(ReconcileAnswer).validate_json(response.content, strict=True)
    return response.json()


@pytest.mark.parametrize("name", bodies.REQUESTS)
def test_an_example_is_answered_as_described(client: TestClient, name: str) -> None:
    found = asked(client, **bodies.REQUESTS[name]["value"])
    assert found["explained"]
    assert found["explanations"][0]["exact"]


def test_the_answer_that_is_shown_is_the_answer(client: TestClient) -> None:
    assert asked(client, **bodies.REQUESTS["article"]["value"]) == dict(bodies.ANSWER)


def test_every_truth_is_answered_and_adds_up(client: TestClient) -> None:
    for truth in sized.truths().values():
        if "published_other" in truth:
            model = {"config": sized.asked(truth["config"])}
            found = asked(client, model=model, published=truth["published_other"])
            symbols = {x["letter"]: x["value"] for x in found["symbols"]}
            assert found["ours"]["value"] == truth["params_total"]
            assert found["difference"]["value"] == truth["published_other"] - truth["params_total"]
            for made in found["explanations"]:
                adds_up(made, truth, symbols)


def adds_up(made: Any, truth: dict[str, Any], symbols: dict[str, int]) -> None:  # noqa: ANN401
    parts = [part for each in made["differences"] for part in each["parts"]]
    gained = sum(part["value"] for part in parts)
    assert made["number"]["value"] == truth["params_total"] + gained
    assert made["number"]["value"] + made["remaining"]["value"] == truth["published_other"]
    assert made["exact"] == (made["remaining"]["value"] == 0)
    for part in parts:
        assert evaluated(part["substituted"]) == part["value"] == int(part["exact"])
        assert evaluated(part["formula"], symbols) == part["value"]


def test_our_own_number_is_as_counted(client: TestClient) -> None:
    for published in (124439808, "124439808"):
        (made,) = asked(client, model=GPT2, published=published)["explanations"]
        assert (made["id"], made["differences"], made["exact"]) == ("as_counted", [], True)


def test_our_own_number_rounded_is_rounding(client: TestClient) -> None:
    for text in ("124M", "0.12B", "124440K", "124.4398M"):
        (made,) = asked(client, model=GPT2, published=text)["explanations"]
        assert (made["id"], made["differences"], made["exact"]) == ("rounding", [], True)
    (made, *_) = asked(client, model=GPT2, published="124.4397M")["explanations"]
    assert made["id"] != "rounding"


@pytest.mark.parametrize(
    ("text", "value", "lowest", "highest"),
    [
        ("1.3B", 1_300_000_000, 1_250_000_000, 1_350_000_000),
        ("1.30B", 1_300_000_000, 1_295_000_000, 1_305_000_000),
        ("671B", 671 * 10**9, 670_500_000_000, 671_500_000_000),
        ("1K", 1000, 500, 1500),
        ("1.234K", 1234, 1234, 1234),
        ("12", 12, 12, 12),
        ("1T", 10**12, 5 * 10**11, 15 * 10**11),
    ],
)
def test_digits_with_a_suffix_are_within_half_of_the_last(
    client: TestClient, text: str, value: int, lowest: int, highest: int
) -> None:
    told = asked(client, model=GPT2, published=text)["published"]
    assert told["text"] == text
    assert [told[x]["value"] for x in ("value", "lowest", "highest")] == [value, lowest, highest]


def test_so_many_explanations_as_asked_for_are_answered(client: TestClient) -> None:
    found = {n: asked(client, model=GPT2, published="85M", best=n) for n in (1, 3, 20)}
    assert [len(found[n]["explanations"]) for n in (1, 3)] == [1, 3]
    assert found[20]["explanations"][:3] == found[3]["explanations"]


def test_a_number_that_nothing_explains_says_so(client: TestClient) -> None:
    found = asked(client, model={"preset": "qwen2.5-7b"}, published=6993420288, best=20)
    assert not found["explained"]
    assert found["explanations"][-1]["id"] == "as_counted"
    assert any("rest" in note for note in found["notes"])


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_answered_whatever_number_is_published(client: TestClient, name: str) -> None:
    for published in (1, 7 * 10**9, 10**18, "1.3B"):
        found = asked(client, model={"preset": name}, published=published, best=20)
        assert found["explanations"]
        assert all(int(made["number"]["exact"]) > 0 for made in found["explanations"])


@pytest.mark.parametrize(
    "raw",
    [
        *("0", "-1", "1" + "0" * 30, "1e999", "1.5", "1e9", "true", "null", "[]", "{}"),
        *('"1.3"', '"abc"', '""', '"0B"', '"1.3b"', '" 1B"', '"1B\\n"', '"1.23456K"', '"-1B"'),
        *('"9999999999B"', '"1,300"', '"NaN"', '"\\u0661B"', '"' + "9" * 100_000 + 'B"'),
    ],
)
def test_what_is_no_count_is_refused_with_the_rule(
    client: TestClient, assert_problem: AssertProblem, raw: str
) -> None:
    body = f'{{"model": {{"preset": "gpt2"}}, "published": {raw}}}'
    response = client.post(URL, content=body, headers={"content-type": "application/json"})
    (fault,) = assert_problem(response, "invalid-request")["errors"]
    assert (fault["pointer"], fault["code"]) == ("/published", "published")
    assert "whole number from 1 to 10^18" in fault["detail"]


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"model": GPT2}, "invalid-request", "/published"),
        ({"published": 5}, "invalid-request", "/model"),
        ({"model": GPT2, "published": 5, "unit": "bytes"}, "invalid-request", "/unit"),
        ({"model": GPT2, "published": 5, "best": 0}, "invalid-request", "/best"),
        ({"model": GPT2, "published": 5, "best": 21}, "invalid-request", "/best"),
        ({"model": GPT2, "published": 5, "more": 1}, "invalid-request", "/more"),
        ({"model": {"preset": "nobody"}, "published": 5}, "invalid-request", "/model/preset"),
        ({"model": {"name": "nobody"}, "published": 5}, "unknown-model", "/model/name"),
        (
            {"model": {"config": {"d_model": 9, "attention": {"n_heads": 2}}}, "published": 5},
            *("config-rule", "/model/config/attention/n_heads"),
        ),
    ],
)
def test_a_wrong_request_is_told_where_it_is(
    client: TestClient,
    assert_problem: AssertProblem,
    body: dict[str, Any],
    code: str,
    pointer: str,
) -> None:
    found = assert_problem(client.post(URL, json=body), code)
    assert [fault["pointer"] for fault in found["errors"]] == [pointer]


def test_the_widest_config_is_answered(client: TestClient) -> None:
    config = {
        "d_model": 1 << 20,
        "n_layers": 3,
        "vocab": 1 << 20,
        "attention": {"n_heads": 1 << 10, "n_kv_heads": 1, "d_head": 1 << 10},
        "position": {"kind": "rope"},
        "ffn": {"kind": "gated", "d_ff": 1},
        "norm": {"kind": "rmsnorm"},
    }
    for published in (1, 10**18, "1T"):
        asked(client, model={"config": config}, published=published, best=20)
