"""POST /v1/sizing over HTTP: what is asked for is there, letters are named, refusals point."""

import re
from collections.abc import Callable, Iterator
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter
from starlette.testclient import TestClient

import sized
from compute.sizing.vocabulary import Ask
from evaluating import evaluated
from schemas.presets import PRESETS
from schemas.sizing.answer import SizingAnswer

AssertProblem = Callable[..., dict[str, Any]]

DEVICE = {"name": "a100-80gb-sxm"}
EVERY = get_args(Ask)
FUNCTIONS = {"min", "max", "ceil"}


def ask(client: TestClient, **body: Any) -> dict[str, Any]:  # noqa: ANN401 - plain JSON
    response = client.post("/v1/sizing", json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_sized_whole_and_as_described(client: TestClient, name: str) -> None:
    response = client.post("/v1/sizing", json={"model": {"preset": name}, "device": DEVICE})
    assert response.status_code == 200, response.text
    TypeAdapter(SizingAnswer).validate_json(response.content, strict=True)
    answer = response.json()
    for section in EVERY:
        assert (answer[section] is None) == (section in answer["absent"]), section
    for total, parts in ledgers(answer):
        assert sum(int(part["exact"]) for part in parts) == int(total["exact"])
        assert sum(part["share"] for part in parts) == pytest.approx(float(bool(parts)), abs=1e-12)


@pytest.mark.parametrize("name", PRESETS)
def test_every_letter_of_a_formula_is_named_and_its_numbers_give_the_value(
    client: TestClient, name: str
) -> None:
    answer = ask(client, model={"preset": name}, device=DEVICE, side_by_side=True)
    for known, part in formulas(answer, frozenset()):
        letters = set(re.findall(r"[A-Za-z_][A-Za-z_0-9]*", part["formula"])) - FUNCTIONS
        assert letters <= known, part["formula"]
        assert evaluated(part["substituted"]) == evaluated(part["exact"])


def ledgers(node: object) -> Iterator[tuple[Any, Any]]:
    """(total, parts) of every ledger that is exact to the unit in an answer."""
    if isinstance(node, dict):
        if {"total", "parts"} <= set(node):
            yield node["total"], node["parts"]
        for value in node.values():
            yield from ledgers(value)
    elif isinstance(node, list):
        for value in node:
            yield from ledgers(value)


def formulas(node: object, known: frozenset[str]) -> Iterator[tuple[frozenset[str], Any]]:
    """(the letters that are named, part) of every part of an answer that has a formula."""
    if isinstance(node, dict):
        if isinstance(node.get("symbols"), list):
            known |= {symbol["letter"] for symbol in node["symbols"]}
        if {"formula", "substituted", "share", "exact"} <= set(node):
            yield known, node
        for value in node.values():
            yield from formulas(value, known)
    elif isinstance(node, list):
        for value in node:
            yield from formulas(value, known)


@pytest.mark.parametrize("section", EVERY)
def test_what_was_not_asked_for_is_null(client: TestClient, section: str) -> None:
    answer = ask(client, model={"preset": "gpt2-tiny"}, ask=[section], device=DEVICE)
    assert [name for name in EVERY if answer[name] is not None] == [section]
    assert answer["absent"] == {}


def test_what_does_not_apply_is_absent_with_the_reason(client: TestClient) -> None:
    answer = ask(client, model={"preset": "vit-b-16"})
    assert answer["kv_cache"] is answer["trace"] is answer["roofline"] is None
    assert set(answer["absent"]) == {"kv_cache", "trace", "roofline"}
    assert "device" in answer["absent"]["roofline"]
    assert "patches" in answer["absent"]["trace"]
    assert answer["workload"]["tokens"] == 197


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        ({"model": {"preset": "bert-base"}, "ask": ["kv_cache"]}, "/ask", "no_cache"),
        ({"model": {"preset": "deepseek-v3"}, "ask": ["trace"]}, "/model/preset", "sized_only"),
        ({"model": {"preset": "gpt2"}, "ask": ["roofline"]}, "/device", "missing"),
        ({"model": {"preset": "gpt2"}, "tokens": 1025}, "/tokens", "beyond_positions"),
        ({"model": {"preset": "gpt2"}, "cached": 1024}, "/cached", "beyond_positions"),
        ({"model": {"preset": "gpt2"}, "new_tokens": 1024}, "/new_tokens", "beyond_positions"),
        ({"model": {"preset": "gpt2"}, "source_tokens": 3}, "/source_tokens", "no_memory"),
        ({"model": {"preset": "vit-b-16"}, "tokens": 5}, "/tokens", "not_its_patches"),
        ({"model": {"preset": "bert-base"}, "new_tokens": 2}, "/new_tokens", "no_generation"),
    ],
)
def test_what_cannot_be_sized_is_refused_where_it_stands(
    client: TestClient,
    assert_problem: AssertProblem,
    body: dict[str, Any],
    pointer: str,
    code: str,
) -> None:
    found = assert_problem(client.post("/v1/sizing", json=body), "unanswerable")
    assert {(fault["pointer"], fault["code"]) for fault in found["errors"]} == {(pointer, code)}


@pytest.mark.parametrize(
    ("said", "pointer"),
    [
        ({"d_model": 0}, "/model/config/d_model"),
        ({"d_model": -8}, "/model/config/d_model"),
        ({"d_model": 10**30}, "/model/config/d_model"),
        ({"d_model": "8"}, "/model/config/d_model"),
        ({"d_model": 8.0}, "/model/config/d_model"),
        ({"n_layers": 1 << 21}, "/model/config/n_layers"),
        ({"vocab": 0}, "/model/config/vocab"),
        ({"attention": {"n_heads": 3}}, "/model/config/attention/n_heads"),
        ({"attention": {"n_heads": 4, "n_kv_heads": 3}}, "/model/config/attention/n_kv_heads"),
        ({"ffn": {"kind": "moe", "n_experts": 2, "top_k": 3}}, "/model/config/ffn/top_k"),
        ({"attention": {"n_heads": 4, "window": 0}}, "/model/config/attention/window"),
        (
            {"position": {"kind": "rope"}, "attention": {"n_heads": 8}},
            "/model/config/position/rotary_dim",
        ),
        ({"vocab": 9, "vocab_padded_to": 8}, "/model/config/vocab_padded_to"),
    ],
)
def test_impossible_config_is_refused_with_its_rule(
    client: TestClient, said: dict[str, Any], pointer: str
) -> None:
    config = {"d_model": 8, "attention": {"n_heads": 4}, **said}
    response = client.post("/v1/sizing", json={"model": {"config": config}})
    assert response.status_code == 422
    assert [fault["pointer"] for fault in response.json()["errors"]] == [pointer]
    assert response.json()["errors"][0]["detail"]


@pytest.mark.parametrize("key", ["tokens", "batch", "cached", "new_tokens", "train_tokens"])
@pytest.mark.parametrize("value", [-1, 10**30, "12", "128k", 1.5, True, [1]])
def test_hostile_count_is_refused_where_it_stands(
    client: TestClient, assert_problem: AssertProblem, key: str, value: object
) -> None:
    body = {"model": {"preset": "llama-3.1-8b"}, key: value}
    found = assert_problem(client.post("/v1/sizing", json=body), "invalid-request")
    assert [fault["pointer"] for fault in found["errors"]] == [f"/{key}"]


def test_largest_request_overflows_nothing_and_rounds_nothing(client: TestClient) -> None:
    body = {
        "model": {"preset": "llama-3.1-405b", "config": {"n_layers": 1 << 20}},
        "ask": ["parameters", "flops", "kv_cache", "weights", "training"],
        "tokens": 1 << 40,
        "batch": 1 << 40,
        "train_tokens": 1 << 60,
    }
    answer = ask(client, **body)
    block = sized.truths()["llama-3.1-405b"]["params_per_block"]
    total = int(answer["parameters"]["total"]["exact"])
    assert total == (1 << 20) * block + 2 * 128256 * 16384 + 16384
    assert answer["flops"]["forward"]["total"]["value"] > 1e30
    assert int(answer["flops"]["forward"]["total"]["exact"]) > 10**30
    kept = (1 << 20) * 2 * 8 * 128 * 2 * (1 << 80)
    assert int(answer["kv_cache"]["allocation"]["total"]["exact"]) == kept


def test_model_beyond_all_is_refused(client: TestClient, assert_problem: AssertProblem) -> None:
    config = {"n_layers": 1 << 20, "d_model": 1 << 20, "attention": {"n_heads": 1}}
    response = client.post("/v1/sizing", json={"model": {"config": config}})
    found = assert_problem(response, "config-rule")
    assert [fault["code"] for fault in found["errors"]] == ["too_many_parameters"]


def test_named_model_and_its_changes_are_sized(client: TestClient) -> None:
    plain = ask(client, model={"name": "induction"}, ask=["parameters"])
    config = {"n_layers": 4}
    deeper = ask(client, model={"name": "induction", "config": config}, ask=["parameters"])
    block = plain["parameters"]["per_block"][0]["parameters"]
    assert deeper["model"]["overrides"] == ["n_layers"]
    gained = deeper["parameters"]["total"]["value"] - plain["parameters"]["total"]["value"]
    assert gained == (4 - plain["model"]["config"]["n_layers"]) * block


def test_article_example_is_twelve_d_squared(client: TestClient) -> None:
    config = {
        "d_model": 8,
        "attention": {"n_heads": 2},
        "ffn": {"bias": False},
        "norm": {"kind": "none"},
    }
    answer = ask(client, model={"config": config}, ask=["parameters"])["parameters"]
    assert answer["total"]["value"] == answer["article"]["total"]["value"] == 12 * 8**2
    assert (answer["article"]["gap"]["value"], answer["article"]["gap_parts"]) == (0, [])
