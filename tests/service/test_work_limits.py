"""Limits of size and work: all of what was asked, or a 413 with a selection that fits."""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

MakeClient = Callable[..., TestClient]
AssertProblem = Callable[..., dict[str, Any]]


def request(n: int = 5, **config: object) -> dict[str, Any]:
    return {
        "model": {"config": {"d_model": 8, "attention": {"n_heads": 2}, **config}},
        "input": {"tensor": [[0.5] * 8] * n},
    }


@pytest.mark.parametrize(
    ("name", "most", "asked"),
    [
        ("positions", 4, request(5)),
        ("d_model", 7, request()),
        ("rank", 1, request()),
        ("blocks", 2, request(n_layers=3)),
        ("batch", 1, {**request(), "input": {"tensor": [[[0.5] * 8]] * 2}}),
    ],
)
def test_limits_of_size_name_themselves(
    make_client: MakeClient,
    assert_problem: AssertProblem,
    name: str,
    most: int,
    asked: dict[str, Any],
) -> None:
    response = make_client(**{name: most}).post("/v1/trace", json=asked)
    limit = assert_problem(response, "beyond-limit")["limit"]
    assert (limit["name"], limit["value"]) == (name, most)
    assert limit["got"] > most


@pytest.mark.parametrize("name", ["answer_elements", "memory_bytes", "work_flops"])
def test_request_at_a_limit_is_answered_and_one_above_it_is_not(
    make_client: MakeClient, assert_problem: AssertProblem, name: str
) -> None:
    asked = request()
    body = assert_problem(make_client(**{name: 1}).post("/v1/trace", json=asked), "beyond-limit")
    needed = body["limit"]["got"]
    assert make_client(**{name: needed}).post("/v1/trace", json=asked).status_code == 200
    response = make_client(**{name: needed - 1}).post("/v1/trace", json=asked)
    assert assert_problem(response, "beyond-limit")["limit"]["got"] == needed


def test_estimate_is_what_the_answer_has(
    make_client: MakeClient, assert_problem: AssertProblem
) -> None:
    asked = request(n_layers=2)
    refused = make_client(answer_elements=10).post("/v1/trace", json=asked)
    estimate = assert_problem(refused, "beyond-limit")["estimate"]
    answer = make_client().post("/v1/trace", json=asked).json()
    assert estimate["elements"] == answer["cost"]["elements"]
    parts = [part["elements"] for part in estimate["parts"]]
    assert parts == sorted(parts, reverse=True)


@pytest.mark.parametrize("most", [60, 100, 300, 900])
@pytest.mark.parametrize("n_layers", [1, 3])
def test_advice_fits(
    make_client: MakeClient, assert_problem: AssertProblem, most: int, n_layers: int
) -> None:
    client = make_client(answer_elements=most)
    asked = request(n_layers=n_layers)
    body = assert_problem(client.post("/v1/trace", json=asked), "beyond-limit")
    again = client.post("/v1/trace", json={**asked, "select": body["advice"]["select"]})
    assert again.status_code == 200
    assert 0 < again.json()["cost"]["elements"] <= most


def test_what_does_not_fit_whole_may_fit_summed_up(
    make_client: MakeClient, assert_problem: AssertProblem
) -> None:
    client = make_client(answer_elements=70)
    asked = {**request(), "select": [{"name": "source_out", "position": [4]}]}
    select = assert_problem(client.post("/v1/trace", json=asked), "beyond-limit")["advice"][
        "select"
    ]
    assert select == [{"name": "blocks.*.attn.source_out", "position": [4], "summary": True}]
    assert client.post("/v1/trace", json={**asked, "select": select}).status_code == 200


def test_summary_costs_what_is_summed_up(
    make_client: MakeClient, assert_problem: AssertProblem
) -> None:
    select = [{"name": "source_out", "position": [0, 1, 2, 3, 4], "summary": True}]
    asked = {**request(), "select": select}
    body = assert_problem(make_client(memory_bytes=1).post("/v1/trace", json=asked), "beyond-limit")
    whole = 4 * 2 * 5 * 5 * 8  # float32, heads, receiving and source positions, d_model
    assert body["limit"]["got"] > whole
    assert body["estimate"]["elements"] == 2 * 5 * 5 * 5


def test_refusal_tells_its_limit_however_much_was_asked(
    make_client: MakeClient, assert_problem: AssertProblem
) -> None:
    many = list(range(2000))
    select = [{"name": name, "position": many} for name in ("resid_post", "A", "H")]
    client = make_client(answer_elements=10)
    response = client.post("/v1/trace", json={**request(2000), "select": select})
    body = assert_problem(response, "beyond-limit")
    assert {"limit", "estimate", "advice"} <= set(body)


def test_advice_keeps_slices_and_summaries(
    make_client: MakeClient, assert_problem: AssertProblem
) -> None:
    select = [{"name": "resid_post", "position": [-1]}, {"name": "X", "summary": True}, "A"]
    client = make_client(answer_elements=45)
    body = assert_problem(
        client.post("/v1/trace", json={**request(), "select": select}), "beyond-limit"
    )
    again = client.post("/v1/trace", json={**request(), "select": body["advice"]["select"]})
    assert again.json()["tensors"]["blocks.0.resid_post"]["index"] == {"position": [4]}


def test_nothing_fits_is_said(make_client: MakeClient, assert_problem: AssertProblem) -> None:
    response = make_client(work_flops=1).post("/v1/trace", json=request())
    assert "fewer positions" in assert_problem(response, "beyond-limit")["advice"]["text"]


def test_huge_configs_are_refused_before_anything_is_made(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    wide = request(1, ffn={"d_ff": 1 << 20})
    wide["model"]["config"]["d_model"] = 8192
    wide["input"] = {"tensor": [[0.0] * 8192]}
    body = assert_problem(client.post("/v1/trace", json=wide), "beyond-limit")
    assert body["limit"]["name"] == "memory_bytes"
    deep = request(n_layers=1 << 20)
    assert (
        assert_problem(client.post("/v1/trace", json=deep), "beyond-limit")["limit"]["name"]
        == "blocks"
    )
