"""What can be sized and not run is refused by name, where the request says it or names it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from service.app import create_app
from service.routes import presets
from service.settings import Settings

AssertProblem = Callable[..., dict[str, Any]]

MODELS = Path(__file__).parents[2] / "models"
SIZED = [line.name for line in presets.listed().presets if not line.runs]
LATENT = {"kv_lora_rank": 4, "d_nope": 2, "d_rope": 2}
EXPERTS = {"kind": "moe", "n_experts": 2, "top_k": 1}
SMALL = {"d_model": 8, "n_layers": 2, "attention": {"n_heads": 2}, "vocab": 5}


def traced(client: TestClient, model: dict[str, Any], **others: object) -> Any:  # noqa: ANN401
    """The response to a trace of three tokens."""
    asked = {"model": model, "input": {"token_ids": [1, 2, 3]}, **others}
    return client.post("/v1/trace", json=asked)


def pointers(problem: dict[str, Any]) -> list[str]:
    """Where the faults of a problem stand; each is of what is sized and not run."""
    assert {fault["code"] for fault in problem["errors"]} == {"sized_only"}
    return [fault["pointer"] for fault in problem["errors"]]


def test_these_presets_are_sized_only() -> None:
    narrow, normless = ["albert-base-v2", "electra-small"], ["olmo-1b", "olmo-7b"]
    images = ["vit-b-16", "vit-b-16-backbone", "vit-b-32", "vit-h-14"]
    latent = ["deepseek-v2-lite", "deepseek-v3"]
    assert sorted(SIZED) == [*narrow[:1], *latent, *narrow[1:], *normless, *images]


@pytest.mark.parametrize("name", SIZED)
def test_preset_that_is_sized_only_is_refused_where_it_is_named(
    client: TestClient, assert_problem: AssertProblem, name: str
) -> None:
    asked: dict[str, Any] = {"model": {"preset": name}, "input": {"token_ids": [1]}}
    problem = assert_problem(client.post("/v1/trace", json=asked), "config-rule")
    assert set(pointers(problem)) == {"/model/preset"}
    line = next(line for line in presets.listed().presets if line.name == name)
    assert " ".join(fault["detail"] for fault in problem["errors"]) == line.reason


def test_deepseek_v3_is_told_what_of_it_does_not_run(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    problem = assert_problem(traced(client, {"preset": "deepseek-v3"}), "config-rule")
    latent = "attention.mla: latent attention can be sized (POST /v1/sizing) and not run."
    dense = "ffn.first_dense: a mixture with dense blocks can be sized (POST /v1/sizing)"
    details = [fault["detail"] for fault in problem["errors"]]
    assert details == [latent, f"{dense} and not run."]


@pytest.mark.parametrize(
    ("said", "pointer"),
    [
        ({"attention": {"n_heads": 2, "mla": LATENT}}, "attention/mla"),
        ({"ffn": {**EXPERTS, "first_dense": 1}}, "ffn/first_dense"),
        ({"ffn": {**EXPERTS, "every": 2}}, "ffn/every"),
        ({"norm": {"gain": False}}, "norm/gain"),
        ({"vocab_padded_to": 8}, "vocab_padded_to"),
        ({"d_embed": 4}, "d_embed"),
        ({"distinct_blocks": 1}, "distinct_blocks"),
        ({"vocab": None, "patches": {"image_size": 4, "patch_size": 2}}, "patches"),
        (
            {"encoder": {"attention": {"n_heads": 2}, "norm": {"gain": False}}},
            "encoder/norm/gain",
        ),
    ],
)
def test_field_that_is_sized_only_is_pointed_at(
    client: TestClient, assert_problem: AssertProblem, said: dict[str, Any], pointer: str
) -> None:
    model = {"config": {**SMALL, **said}}
    memory = {"memory": {"token_ids": [1]}} if "encoder" in said else {}
    read = {"tensor": [[1.0] * 8]} if "patches" in said else {"token_ids": [1]}
    asked = {"model": model, "input": {**read, **memory}}
    problem = assert_problem(client.post("/v1/trace", json=asked), "config-rule")
    assert pointers(problem) == [f"/model/config/{pointer}"]


def test_change_of_a_preset_is_pointed_at_and_what_it_brings_at_its_name(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    model = {"preset": "albert-base-v2", "config": {"n_layers": 2, "distinct_blocks": 2}}
    problem = assert_problem(traced(client, model), "config-rule")
    assert pointers(problem) == ["/model/preset", "/model/config/distinct_blocks"]


def test_change_of_a_named_model_is_pointed_at(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    model = {"name": "letter-sort", "config": {"vocab_padded_to": 64}}
    problem = assert_problem(traced(client, model), "config-rule")
    assert pointers(problem) == ["/model/config/vocab_padded_to"]


def test_folder_whose_config_is_sized_only_is_refused_by_its_name(
    make_client: Callable[..., TestClient], assert_problem: AssertProblem, tmp_path: Path
) -> None:
    folder = tmp_path / "padded"
    shutil.copytree(MODELS / "letter-sort", folder)
    written = json.loads((folder / "config.json").read_bytes())
    written["vocab_padded_to"] = 64
    (folder / "config.json").write_text(json.dumps(written))
    response = traced(make_client(models=[tmp_path]), {"name": "padded"})
    assert pointers(assert_problem(response, "config-rule")) == ["/model/name"]


def test_without_what_is_sized_only_a_preset_runs(client: TestClient) -> None:
    changes = {
        "d_model": 16,
        "n_layers": 1,
        "vocab": 9,
        "attention": {"n_heads": 2, "mla": None},
        "ffn": {
            "d_ff": 8,
            "n_experts": 4,
            "top_k": 2,
            "d_shared": 8,
            "first_dense": 0,
            "d_dense": None,
        },
    }
    response = traced(client, {"preset": "deepseek-v3", "config": changes})
    assert response.status_code == 200, response.text
    config = response.json()["model"]["config"]
    assert (config["attention"]["d_head"], config["ffn"]["router_bias"]) == (8, True)


def test_what_stands_beside_the_run_does_not_stop_it(client: TestClient) -> None:
    beside = {"pooler": True, "classes": 3, "extras": [{"name": "mtp", "parameters": 5}]}
    alone = traced(client, {"preset": "bert-tiny", "config": {"vocab": 9}}).json()
    changed = {"preset": "bert-tiny", "config": {"vocab": 9, **beside}}
    response = traced(client, changed)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer["tensors"] == alone["tensors"]
    assert answer["model"]["overrides"] == ["vocab", "pooler", "classes", "extras"]


def calls() -> dict[str, dict[str, Any]]:
    """Path -> a documented request of it, for each call that runs a model."""
    paths = create_app(Settings()).openapi()["paths"]
    found: dict[str, dict[str, Any]] = {}
    for path, methods in paths.items():
        content = methods.get("post", {}).get("requestBody", {}).get("content", {})
        examples = content.get("application/json", {}).get("examples", {})
        bodies = [example["value"] for example in examples.values()]
        if not path.startswith("/v1/sizing") and bodies:
            found[path] = next(body for body in bodies if "model" in body or "a" in body)
    return found


CALLS = calls()


def with_model(body: dict[str, Any], model: dict[str, Any]) -> dict[str, Any]:
    """A request with another model, on both sides where it has two."""
    sides = {side: {**body[side], "model": model} for side in ("a", "b") if side in body}
    return {**body, **(sides or {"model": model})}


@pytest.mark.parametrize("path", CALLS)
def test_every_call_that_runs_a_model_refuses_it(
    client: TestClient, assert_problem: AssertProblem, path: str
) -> None:
    body = with_model(CALLS[path], {"preset": "deepseek-v3"})
    problem = assert_problem(client.post(path, json=body), "config-rule")
    assert set(pointers(problem)) <= {"/model/preset", "/a/model/preset"}


def test_stages_are_listed_as_before(client: TestClient) -> None:
    assert client.get("/v1/stages").status_code == 200
