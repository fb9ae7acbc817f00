"""Sizing of odd configs: each of these was once a wrong number, a failure or a long wait."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from evaluating import evaluated
from service import cli

AssertProblem = Callable[..., dict[str, Any]]

ONE_HEAD = {"d_model": 4, "attention": {"n_heads": 1}}
WIDE_ENCODER = {
    "d_model": 4,
    "vocab": 5,
    "attention": {"n_heads": 2, "d_head": 4},
    "encoder": {"attention": {"n_heads": 1}},
}
GATED_SHARE = {"kind": "moe", "n_experts": 2, "top_k": 1, "d_shared": 2, "shared_gate": True}


def ask(client: TestClient, config: dict[str, Any], **body: Any) -> dict[str, Any]:  # noqa: ANN401
    response = client.post("/v1/sizing", json={"model": {"config": config}, **body})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_gate_of_a_shared_expert_moves_its_row(client: TestClient) -> None:
    answer = ask(client, {**ONE_HEAD, "ffn": GATED_SHARE}, device={"name": "t4"})
    moved = {x["id"]: x for x in answer["roofline"]["prefill"]["operators"]}
    assert moved["blocks.ffn.W_shared_weight"]["activations"] == 1024 * (4 + 1) * 2


def test_trace_of_a_memory_without_rows_is_sized(client: TestClient) -> None:
    config = {**ONE_HEAD, "vocab": 5, "encoder": {"attention": {"n_heads": 1}}}
    answer = ask(client, config, source_tokens=0)
    assert answer["trace"]["elements"]["total"]["value"] > 0


def test_bias_of_the_encoders_embed_projection_is_added_too(client: TestClient) -> None:
    config = {**ONE_HEAD, "vocab": 5, "d_embed": 3, "encoder": {"attention": {"n_heads": 1}}}
    answer = ask(client, config, ask=["flops"], tokens=2, conventions={"bias_adds": True})
    parts = {part["id"]: part["value"] for part in answer["flops"]["forward"]["parts"]}
    assert parts["embed_projection.b"] == parts["encoder.embed_projection.b"] == 2 * 4


def test_default_tokens_fit_the_encoders_table(client: TestClient) -> None:
    encoder = {"attention": {"n_heads": 1}, "position": {"kind": "learned", "n_positions": 8}}
    answer = ask(client, {**ONE_HEAD, "encoder": encoder})
    assert (answer["workload"]["tokens"], answer["workload"]["source_tokens"]) == (8, 8)


@pytest.mark.parametrize("window", [None, 3])
def test_formulas_of_a_cached_step_have_its_own_letters(
    client: TestClient, window: int | None
) -> None:
    config = {"d_model": 8, "attention": {"n_heads": 2, "window": window}, "n_layers": 3}
    answer = ask(client, config, tokens=5, batch=2, ask=["flops"])
    outer = answer["symbols"] + answer["flops"]["symbols"]
    letters = {x["letter"]: x["value"] for x in outer + answer["flops"]["decode"]["symbols"]}
    for part in answer["flops"]["decode"]["parts"]:
        assert evaluated(part["formula"], letters) == part["value"]


@pytest.mark.parametrize("config", [WIDE_ENCODER, {**WIDE_ENCODER, "n_layers": 3}])
def test_letters_of_one_formula_are_of_one_stack(
    client: TestClient, config: dict[str, Any]
) -> None:
    answer = ask(client, config, ask=["parameters"])
    article = answer["parameters"]["article"]
    symbols = answer["symbols"]
    own = {x["letter"]: x["value"] for x in symbols if not x["meaning"].startswith("encoder.")}
    theirs = {x["letter"]: x["value"] for x in symbols if x["meaning"].startswith("encoder.")}
    for part in [*article["parts"], *article["gap_parts"]]:
        letters = {**own, **theirs} if part["id"].startswith("encoder.") else {**theirs, **own}
        assert evaluated(part["formula"], letters) == part["value"], part


def test_windows_of_one_answer_have_letters_of_their_own(client: TestClient) -> None:
    layers = [{"window": 2}, {"window": 3}, {}]
    answer = ask(client, {**ONE_HEAD, "n_layers": 3, "layers": layers}, tokens=9)
    for section in ("flops", "kv_cache"):
        named = [x["letter"] for x in answer[section]["symbols"]]
        assert {"w_2", "w_3"} <= set(named)
        assert len(named) == len(set(named))


def windows(count: int) -> dict[str, Any]:
    layers = [{"window": at % count + 1} for at in range(1024)]
    return {**ONE_HEAD, "n_layers": 1024, "layers": layers}


def test_many_different_windows_are_refused_before_they_cost(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    assert ask(client, windows(32), ask=["kv_cache"])
    body = {"model": {"config": windows(33)}}
    found = assert_problem(client.post("/v1/sizing", json=body), "config-rule")
    (fault,) = found["errors"]
    assert (fault["pointer"], fault["code"]) == ("/model/config/layers", "too_many_windows")


@pytest.mark.parametrize(
    ("target", "rule"),
    [
        ({"kv_bytes_per_token": 1000000, "dtype": "q6_k"}, {"d_model": {"multiple_of": 32}}),
        ({"kv_bytes_per_token": 26400, "dtype": "int4"}, {}),
    ],
)
def test_inverse_does_not_count_sizes_that_rounding_makes_alike_one_by_one(
    client: TestClient, assert_problem: AssertProblem, target: dict[str, Any], rule: dict[str, Any]
) -> None:
    aspect = {"least": 1, "most": 1048576}
    body = {"target": target, "style": {"preset": "gpt2"}, "aspect": aspect, **rule}
    found = assert_problem(client.post("/v1/sizing/inverse", json=body), "unanswerable")
    assert [fault["code"] for fault in found["errors"]] == ["too_many_alike"]


def test_inverse_of_listed_blocks_answers_in_a_megabyte(client: TestClient) -> None:
    body = {
        "target": {"flops_per_token": 10**14},
        "style": {"preset": "gpt-oss-20b"},
        "aspect": {"least": 1, "most": 2},
        "best": 20,
    }
    response = client.post("/v1/sizing/inverse", json=body)
    assert response.status_code == 200
    assert len(response.content) < 1 << 21


def test_changes_reach_inside_latent_attention_and_patches(client: TestClient) -> None:
    changed = {
        "deepseek-v3": ({"attention": {"mla": {"d_rope": 32}}}, ("attention", "mla", "d_rope"), 32),
        "vit-b-16": ({"patches": {"patch_size": 32}}, ("patches", "patch_size"), 32),
    }
    for preset, (config, path, value) in changed.items():
        body = {"model": {"preset": preset, "config": config}, "ask": ["weights"]}
        model = client.post("/v1/sizing", json=body).json()["model"]
        found: Any = model["config"]
        for key in path:
            found = found[key]
        assert (found, model["overrides"]) == (value, [".".join(path)])


@pytest.mark.parametrize(
    ("config", "missing"),
    [
        ({"attention": {"n_heads": 1, "mla": {"d_nope": 2}}}, ["kv_lora_rank", "d_rope"]),
        ({"patches": {"image_size": 8}}, ["patch_size"]),
    ],
)
def test_what_a_sized_part_needs_is_missed(
    client: TestClient, assert_problem: AssertProblem, config: dict[str, Any], missing: list[str]
) -> None:
    body = {"model": {"config": {**ONE_HEAD, **config}}}
    found = assert_problem(client.post("/v1/sizing", json=body), "invalid-request")
    assert [x["pointer"].rpartition("/")[2] for x in found["errors"]] == missing


def lines(capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    yield from capsys.readouterr().err.splitlines()


def test_image_with_more_patches_than_rows_is_told_at_the_model(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    body = {"model": {"preset": "vit-b-16", "config": {"patches": {"patch_size": 8}}}}
    found = assert_problem(client.post("/v1/sizing", json=body), "unanswerable")
    assert [(x["pointer"], x["got"]) for x in found["errors"]] == [("/model", 785)]


def test_file_and_words_do_not_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["size", "request.json", "--context", "5"]) == 2
    assert any("leave the other words out" in line for line in lines(capsys))
