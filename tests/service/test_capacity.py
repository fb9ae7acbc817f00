"""POST /v1/sizing/capacity, from bytes to bytes."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from near import near
from schemas.sizing.capacity import CapacityAnswer
from service.example_bodies import capacity as bodies

AssertProblem = Callable[..., dict[str, Any]]
LLAMA = bodies.REQUESTS["context"]["value"]["model"]
GPT2 = {"preset": "gpt2"}
GIB_24 = {"value": 24, "unit": "GiB"}
MISTRAL = {"config": {**LLAMA["config"], "attention": {"n_heads": 32, "window": 4096}}}
PATCHES = {
    "config": {
        "d_model": 64,
        "attention": {"n_heads": 4, "mask": "full"},
        "patches": {"image_size": 32, "patch_size": 8},
    }
}


def asked(client: TestClient, **body: object) -> Any:  # noqa: ANN401 - plain JSON
    response = client.post("/v1/sizing/capacity", json=body)
    assert response.status_code == 200, response.text
    TypeAdapter(CapacityAnswer).validate_json(response.content, strict=True)
    found = response.json()
    assert sum(part["bytes"]["value"] for part in found["parts"]) == found["total"]["value"]
    left = found["memory"]["usable"]["value"] - found["total"]["value"]
    assert found["left"]["value"] == left
    assert found["fits"] is (left >= 0)
    return found


@pytest.mark.parametrize("name", bodies.REQUESTS)
def test_an_example_is_answered_as_described(client: TestClient, name: str) -> None:
    asked(client, **bodies.REQUESTS[name]["value"])


def test_the_answer_that_is_shown_is_the_answer(client: TestClient) -> None:
    found = asked(client, **bodies.REQUESTS["context"]["value"])
    assert near(found, dict(bodies.ANSWER))
    assert found["answer"]["value"] == 74_075


def test_sequences_of_8192_tokens_in_80_gib_are_those_computed_by_hand(client: TestClient) -> None:
    budget = {"value": 80, "unit": "GiB"}
    found = asked(client, model=LLAMA, ask="batch", budget=budget, tokens=8192, dtype="bfloat16")
    assert found["answer"] == {"value": 65, "exact": "65", "unit": "sequences"}
    assert found["following"]["value"] == 66
    assert found["following"]["missing"]["value"] > 0


def test_gb_hold_less_than_gib(client: TestClient) -> None:
    both = [
        asked(client, model=LLAMA, ask="context", budget={"value": 24, "unit": unit})
        for unit in ("GiB", "GB")
    ]
    spent = (24 * (1 << 30) - 24 * 10**9) / 131_072
    values = [found["answer"]["value"] for found in both]
    assert 0 <= values[0] - values[1] - int(spent) <= 1


def test_a_devices_memory_is_its_budget(client: TestClient) -> None:
    found = asked(
        client, model=GPT2, ask="batch", device={"name": "a10"}, tokens=1024, utilisation=0.5
    )
    assert found["memory"]["device"] == "a10"
    assert found["memory"]["total"]["value"] == 24 * 10**9
    assert found["memory"]["usable"]["value"] == 12 * 10**9
    each = 1024 * 12 * 2 * 768 * 2
    assert found["answer"]["value"] == (12 * 10**9 - 2 * 124_439_808) // each


def test_weights_that_do_not_fit_leave_nothing(client: TestClient) -> None:
    found = asked(client, model=LLAMA, ask="context", budget={"value": 8, "unit": "GiB"})
    assert found["answer"]["value"] == 0
    assert (found["fits"], found["binding"]["limit"]) == (False, "weights")
    assert found["following"] is None
    assert found["left"]["value"] < 0


def test_the_end_of_a_learned_table_is_named(client: TestClient) -> None:
    found = asked(client, model=GPT2, ask="context", budget=GIB_24)
    assert found["answer"]["value"] == 1024
    assert found["binding"] == {
        "limit": "positions",
        "part": None,
        "detail": "A learned table of positions ends after 1024 rows; memory is left.",
    }


def test_a_window_may_end_the_growth_of_a_cache(client: TestClient) -> None:
    body = {"model": MISTRAL, "ask": "context", "budget": GIB_24}
    engine, bound = (asked(client, **body, windows=x) for x in ("allocation", "lower_bound"))
    assert (engine["binding"]["limit"], engine["kind"]) == ("memory", "upper_bound")
    assert (bound["answer"]["value"], bound["binding"]["limit"]) == (1 << 40, "cap")


def test_an_image_has_its_patches(client: TestClient) -> None:
    budget = {"value": 1, "unit": "GB"}
    found = asked(client, model=PATCHES, ask="batch", budget=budget)
    assert found["tokens"] == 17
    assert found["include"] == ["weights", "activations"]


@pytest.mark.parametrize(
    ("body", "code", "pointers"),
    [
        ({"ask": "context", "tokens": 5}, "unanswerable", ["/tokens"]),
        ({"ask": "batch"}, "unanswerable", ["/tokens"]),
        ({"ask": "batch", "batch": 2, "tokens": 5}, "unanswerable", ["/batch"]),
        ({"ask": "fits"}, "unanswerable", ["/tokens"]),
        ({"ask": "fits", "tokens": 1025}, "unanswerable", ["/tokens"]),
        ({"ask": "context", "source_tokens": 4}, "unanswerable", ["/source_tokens"]),
        ({"model": PATCHES, "ask": "context"}, "unanswerable", ["/ask"]),
        ({"model": PATCHES, "ask": "fits", "tokens": 5}, "unanswerable", ["/tokens"]),
        (
            {"model": {"preset": "bert-base"}, "ask": "context", "include": ["kv_cache"]},
            "unanswerable",
            ["/include/0"],
        ),
        ({"ask": "context", "device": {"name": "a10"}}, "invalid-request", [""]),
        ({"ask": "context", "budget": {"value": 24}}, "invalid-request", ["/budget/unit"]),
        ({"ask": "context", "utilisation": 1.1}, "invalid-request", ["/utilisation"]),
        ({"ask": "context", "include": ["weights"] * 2}, "invalid-request", [""]),
        ({"ask": "everything"}, "invalid-request", ["/ask"]),
        ({"ask": "context", "model": {"name": "nobody"}}, "unknown-model", ["/model/name"]),
    ],
)
def test_what_cannot_be_answered_is_told_where_it_is(
    client: TestClient,
    assert_problem: AssertProblem,
    body: dict[str, Any],
    code: str,
    pointers: list[str],
) -> None:
    whole = {"model": GPT2, "budget": GIB_24, **body}
    found = assert_problem(client.post("/v1/sizing/capacity", json=whole), code)
    assert [fault["pointer"] for fault in found["errors"]] == pointers


def test_an_unknown_device_is_told_those_there_are(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    body = {"model": GPT2, "ask": "context", "device": {"name": "a10-28gb"}}
    found = assert_problem(client.post("/v1/sizing/capacity", json=body), "invalid-request")
    (fault,) = found["errors"]
    assert (fault["pointer"], fault["code"]) == ("/device/name", "unknown_device")
