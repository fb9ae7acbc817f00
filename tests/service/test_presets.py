"""Presets: the shapes are the published ones, changes are laid over them and told."""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from compute import config_json, config_rules
from compute.errors import ConfigError
from compute.sizing import parameters
from schemas.presets import PRESETS

AssertProblem = Callable[..., dict[str, Any]]

LITERAL = "literal_error"
FEW = ("gpt2", "distilgpt2", "gpt2-tiny", "bert-base", "bert-tiny", "stories15m", "smollm2-135m")


def runs(name: str) -> bool:
    """Whether all of a preset is run."""
    try:
        config_rules.check_run(PRESETS[name].config.to_compute())
    except ConfigError:
        return False
    return True


RUN = [name for name in PRESETS if runs(name)]


def run(client: TestClient, model: dict[str, Any], **changes: object) -> Any:  # noqa: ANN401
    """The answer of a trace of three tokens."""
    asked = {"model": model, "input": {"token_ids": [1, 2, 3]}, **changes}
    response = client.post("/v1/trace", json=asked)
    assert response.status_code == 200, response.text
    return response.json()


def test_first_presets_are_there_by_their_names() -> None:
    assert {*FEW, "llama-tiny"} <= set(PRESETS)
    assert all(name == name.lower() and " " not in name for name in PRESETS)


def test_presets_are_listed_with_source_count_and_whether_they_run(client: TestClient) -> None:
    listed = {line["name"]: line for line in client.get("/v1/presets").json()["presets"]}
    assert list(listed) == list(PRESETS)
    for name, line in listed.items():
        preset = PRESETS[name]
        resolved = preset.config.to_compute()
        assert line == {
            "name": name,
            "meaning": preset.meaning,
            "source": preset.source,
            "parameters": parameters.count(resolved),
            "published": preset.published,
            "runs": name in RUN,
            "reason": line["reason"],
            "config": config_json.as_json(resolved) | {"layers": line["config"]["layers"]},
        }
        assert len(line["config"]["layers"]) == len(resolved.layers)
        assert (line["reason"] is None) == line["runs"]
    assert "attention.mla: latent attention can be sized" in listed["deepseek-v3"]["reason"]


@pytest.mark.parametrize("name", FEW)
def test_small_preset_runs(client: TestClient, name: str) -> None:
    answer = run(client, {"preset": name, "config": {"n_layers": 3, "vocab": 50}})
    assert (answer["model"]["preset"], answer["model"]["name"]) == (name, None)
    assert answer["model"]["overrides"] == ["n_layers", "vocab"]
    assert all(identity["holds"] is not False for identity in answer["identities"])


def test_large_preset_of_one_block_runs(client: TestClient) -> None:
    chosen = [{"name": "logits", "position": [-1], "summary": True}]
    model = {"preset": "gpt2-medium", "config": {"n_layers": 1}}
    answer = run(client, model, select=chosen)
    assert answer["model"]["overrides"] == ["n_layers"]
    assert answer["model"]["config"]["d_model"] == 1024


def narrowed(name: str) -> dict[str, Any]:
    """A preset of six narrow blocks: widths are changed, and nothing else of it."""
    config = PRESETS[name].config
    grouped = {} if config.attention.n_kv_heads is None else {"n_kv_heads": 1}
    attention = {"n_heads": 2, "d_head": 64, **grouped}
    stack = {"n_layers": 6, "attention": attention, "ffn": {"d_ff": 12}}
    encoder = {} if config.encoder is None else {"encoder": stack}
    return {"preset": name, "config": {"d_model": 8, "vocab": 50, **stack, **encoder}}


@pytest.mark.parametrize("name", RUN)
def test_every_preset_that_runs_does_when_it_is_narrow(client: TestClient, name: str) -> None:
    memory = {} if PRESETS[name].config.encoder is None else {"memory": {"token_ids": [4, 5]}}
    chosen = [{"name": stage} for stage in ("embed", "blocks.*.resid_post")]
    read = {"token_ids": [1, 2, 3], **memory}
    answer = run(client, narrowed(name), input=read, select=chosen)
    config, whole = answer["model"]["config"], PRESETS[name].config.to_compute()
    assert all(identity["holds"] is not False for identity in answer["identities"])
    assert len(config["layers"]) in (0, 6)
    assert config["norm"]["placement"] == whole.norm.placement
    assert config["ffn"]["activation"] == whole.ffn.activation
    assert config["position"]["kind"] == whole.position.kind


def test_field_said_as_it_is_is_no_override(client: TestClient) -> None:
    changes = {"n_layers": 2, "norm": {"eps": 1e-5}, "attention": {"n_kv_heads": 1}}
    model = run(client, {"preset": "llama-tiny", "config": changes})["model"]
    assert model["overrides"] == ["attention.n_kv_heads"]


def test_preset_is_the_config_it_stands_for(client: TestClient) -> None:
    by_name = run(client, {"preset": "llama-tiny", "weights": {"seed": 3}})
    written = dict(by_name["model"]["config"])
    by_config = run(client, {"config": written, "weights": {"seed": 3}})
    assert by_config["tensors"] == by_name["tensors"]
    assert by_config["model"]["digest"] == by_name["model"]["digest"]
    assert by_name["model"]["overrides"] == []


def test_changed_field_leaves_the_others_and_what_follows_follows(client: TestClient) -> None:
    changes = {"d_model": 16, "attention": {"n_kv_heads": 2}, "norm": {"placement": "post"}}
    model = run(client, {"preset": "gpt2-tiny", "config": changes})["model"]
    assert model["overrides"] == ["d_model", "attention.n_kv_heads", "norm.placement"]
    config = model["config"]
    assert (config["d_model"], config["ffn"]["d_ff"]) == (16, 64)
    attention = config["attention"]
    assert [attention[k] for k in ("n_heads", "n_kv_heads", "d_head")] == [4, 2, 4]
    assert attention["bias"] == {"q": True, "k": True, "v": True, "o": True}
    assert config["ffn"]["activation"] == "gelu_tanh"
    assert config["final_norm"] is False  # its default follows the placement


@pytest.mark.parametrize(
    ("preset", "changes", "part", "expected"),
    [
        ("bert-tiny", {"norm": {"kind": "rmsnorm"}}, "norm", ("post", 1e-12)),
        ("gpt2-tiny", {"position": {"kind": "rope"}}, "position", (8, 10000.0)),
        ("llama-tiny", {"ffn": {"kind": "mlp"}}, "ffn", (96, "silu")),
    ],
)
def test_other_kind_of_a_part_keeps_what_means_something_for_it(
    client: TestClient, preset: str, changes: dict[str, Any], part: str, expected: tuple[Any, ...]
) -> None:
    config = run(client, {"preset": preset, "config": {**changes, "vocab": 50}})["model"]["config"]
    fields = {
        "norm": ("placement", "eps"),
        "position": ("rotary_dim", "theta"),
        "ffn": ("d_ff", "activation"),
    }
    assert tuple(config[part][field] for field in fields[part]) == expected


@pytest.mark.parametrize("bias", [True, False])
def test_all_biases_are_the_gates_too(client: TestClient, bias: bool) -> None:
    changes = {"ffn": {"bias": bias}}
    model = run(client, {"preset": "llama-tiny", "config": changes})["model"]
    assert model["config"]["ffn"]["bias"] == dict.fromkeys(("in", "gate", "out"), bias)
    said = ["ffn.bias.in", "ffn.bias.gate", "ffn.bias.out"]
    # the gate's is false in the preset, null where every bias is asked for: as the kind has it
    assert model["overrides"] == (said if bias else [])


@pytest.mark.parametrize("part", ["attention", "ffn", "norm", "position"])
def test_part_can_be_switched_off(client: TestClient, part: str) -> None:
    off = {part: {"kind": "none"}}
    answer = run(client, {"preset": "gpt2-tiny", "config": off}, select=["Z"])
    assert answer["model"]["config"][part] == {"kind": "none"}


def test_without_a_vocabulary_a_preset_reads_a_tensor(client: TestClient) -> None:
    model = {"preset": "gpt2-tiny", "config": {"vocab": None}}
    config = run(client, model, input={"tensor": [[1] * 32]})["model"]["config"]
    assert (config["vocab"], config["tied"], config["final_norm"]) == (None, False, False)


def test_weights_of_a_preset_are_the_requests_to_choose(client: TestClient) -> None:
    model = {"preset": "gpt2-tiny", "weights": {"init": "zeros"}}
    assert run(client, model)["model"]["weights"]["init"] == "zeros"


@pytest.mark.parametrize(
    ("model", "pointer", "code"),
    [
        ({"preset": "gpt3"}, "/model/preset", "unknown_preset"),
        ({"preset": 2}, "/model/preset", "string_type"),
        ({"preset": "gpt2", "name": "letter-sort"}, "/model", "exactly_one"),
        ({"preset": "gpt2", "name": "x", "config": {"n_layers": 1}}, "/model", "exactly_one"),
        ({}, "/model", "exactly_one"),
        ({"preset": "gpt2", "config": {"d_ff": 4}}, "/model/config/d_ff", "extra_forbidden"),
        ({"preset": "gpt2", "config": {"norm": {"kind": 0}}}, "/model/config/norm/kind", LITERAL),
        ({"config": {}}, "/model/config/d_model", "missing"),
        ({"config": {"d_model": 4}}, "/model/config/attention/n_heads", "missing"),
    ],
)  # fmt: skip
def test_model_that_is_none_is_pointed_at(
    client: TestClient,
    assert_problem: AssertProblem,
    model: dict[str, Any],
    pointer: str,
    code: str,
) -> None:
    response = client.post("/v1/trace", json={"model": model, "input": {"token_ids": [1]}})
    problem = assert_problem(response, "invalid-request")
    assert (pointer, code) in [(fault["pointer"], fault["code"]) for fault in problem["errors"]]


def test_change_that_breaks_a_rule_is_pointed_at(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    model = {"preset": "gpt2-tiny", "config": {"d_model": 30}}
    response = client.post("/v1/trace", json={"model": model, "input": {"token_ids": [1]}})
    problem = assert_problem(response, "config-rule")
    assert problem["errors"][0]["pointer"] == "/model/config/d_model"
    assert problem["errors"][0]["detail"].endswith(" n_heads is the preset's.")
