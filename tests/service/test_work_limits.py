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


def test_advice_for_a_run_with_measures_names_no_selection_that_would_not_help(
    make_client: MakeClient, assert_problem: AssertProblem
) -> None:
    asked = {
        **request(n_layers=3),
        "measures": [{"stage": "blocks.2.resid_post", "direction": [1.0] * 4}],
    }
    response = make_client(answer_elements=60).post("/v1/trace", json=asked)
    advice = assert_problem(response, "beyond-limit")["advice"]
    assert set(advice) == {"text"}
    assert "measure less" in advice["text"]


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
    response = make_client(memory_bytes=1).post("/v1/trace", json=request())
    assert "fewer positions" in assert_problem(response, "beyond-limit")["advice"]["text"]


def test_what_stands_before_every_product_costs_none(
    make_client: MakeClient, assert_problem: AssertProblem
) -> None:
    client = make_client(work_flops=1)
    body = assert_problem(client.post("/v1/trace", json=request()), "beyond-limit")
    select = body["advice"]["select"]
    assert select == ["blocks.*.resid_pre", *(f"blocks.*.norm1.{x}" for x in _NORM)]
    answer = client.post("/v1/trace", json={**request(), "select": select})
    assert answer.json()["cost"]["flops"] == 0


_NORM = ("scale", "normalized", "out")


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


def parts(client: TestClient, asked: dict[str, Any]) -> dict[str, Any]:
    """What an estimate lists of a request that is refused."""
    body = client.post("/v1/trace", json=asked).json()
    return {part["stage"]: part["elements"] for part in body["estimate"]["parts"]}


def test_weights_are_among_the_parts_where_memory_is_too_little(make_client: MakeClient) -> None:
    asked = {**request(n_layers=2), "select": ["blocks.0.attn.pattern"]}
    in_all = make_client().post("/v1/trace", json=asked).json()["cost"]["parameters"]
    told = parts(make_client(memory_bytes=1), asked)
    assert list(told) == ["weights", "blocks.0.attn.pattern"]
    assert told["weights"] == in_all // 2  # of the block that is reached
    assert list(parts(make_client(work_flops=1), asked)) == ["blocks.0.attn.pattern"]


def test_limit_that_is_broken_names_its_setting(
    make_client: MakeClient, assert_problem: AssertProblem
) -> None:
    response = make_client(memory_bytes=1).post("/v1/trace", json=request())
    detail = assert_problem(response, "beyond-limit")["detail"]
    assert detail.endswith("; the limit is 1, and GLASSBLOCK_MEMORY_BYTES sets it.")


def test_part_of_one_block_has_that_blocks_name(make_client: MakeClient) -> None:
    client = make_client(answer_elements=1)
    one = {**request(n_layers=3), "select": ["blocks.0.resid_post", "attn.pattern"]}
    assert parts(client, one).keys() == {"blocks.0.resid_post", "blocks.*.attn.pattern"}


def test_advice_for_an_encoder_names_its_stages(
    make_client: MakeClient, assert_problem: AssertProblem
) -> None:
    encoder = {"attention": {"n_heads": 2}, "n_layers": 2}
    asked = request(n_layers=2, vocab=3, cross_attention=True, encoder=encoder)
    asked["input"]["memory"] = asked["input"].copy()
    asked["select"] = ["encoder.blocks.*.resid_post", "resid_post", "encoder.blocks.1.attn.pattern"]
    client = make_client(answer_elements=2 * 2 * 5 * 8)
    body = assert_problem(client.post("/v1/trace", json=asked), "beyond-limit")
    stages = {"encoder.blocks.*.resid_post", "blocks.*.resid_post", "encoder.blocks.1.attn.pattern"}
    assert {part["stage"] for part in body["estimate"]["parts"]} == stages
    select = body["advice"]["select"]
    assert set(select) <= stages
    assert client.post("/v1/trace", json={**asked, "select": select}).status_code == 200
