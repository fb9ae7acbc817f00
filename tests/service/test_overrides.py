"""A named model with changes of its config: the same weights, another block."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

AssertProblem = Callable[..., dict[str, Any]]

TEXTS = {"letter-sort": "CABBAC", "induction": "ABCDEABC"}
NAMES = list(TEXTS)


def asked(name: str, config: dict[str, Any] | None = None, **changes: object) -> dict[str, Any]:
    """A trace of a stored model's text, with changes of its config."""
    model = {"name": name} if config is None else {"name": name, "config": config}
    return {"model": model, "input": {"text": TEXTS[name]}, **changes}


def run(client: TestClient, name: str, *args: Any, **changes: Any) -> Any:  # noqa: ANN401
    response = client.post("/v1/trace", json=asked(name, *args, **changes))
    assert response.status_code == 200, response.text
    return response.json()


def stream(answer: Any) -> np.ndarray:  # noqa: ANN401 - plain JSON
    """The stream that leaves the last block."""
    last = answer["model"]["config"]["n_layers"] - 1
    return np.array(answer["tensors"][f"blocks.{last}.resid_post"]["data"])


CHANGES: dict[str, dict[str, Any]] = {
    "norm.placement": {"norm": {"placement": "post"}},
    "norm.eps": {"norm": {"eps": 0.5}},
    "norm.gain_offset": {"norm": {"gain_offset": 1}},
    "attention.mask": {"attention": {"mask": "full"}},
    "attention.window": {"attention": {"window": 2}},
    "attention.scale": {"attention": {"scale": 1}},
    "attention.softcap": {"attention": {"softcap": 1.5}},
    "ffn.activation": {"ffn": {"activation": "relu2"}},
    "topology": {"topology": "parallel"},
    "residual_multiplier": {"residual_multiplier": 0.5},
    "position.kind": {"position": {"kind": "alibi"}},
    "layers": {},
}


def change(name: str, field: str) -> dict[str, Any]:
    """The change of a field; one of `layers` has an entry for each block."""
    blocks = {"letter-sort": 3, "induction": 2}[name]
    return CHANGES[field] or {"layers": [{"window": 2}] + [{}] * (blocks - 1)}


@pytest.mark.parametrize("field", CHANGES)
@pytest.mark.parametrize("name", NAMES)
def test_changed_field_is_told_and_changes_the_states(
    client: TestClient, name: str, field: str
) -> None:
    before, after = run(client, name), run(client, name, change(name, field))
    gone = ["final_norm"] if field == "norm.placement" else []
    assert after["model"]["overrides"] == [field, *gone]
    assert after["model"]["name"] == name
    assert after["model"]["digest"] != before["model"]["digest"]
    assert not np.allclose(stream(before), stream(after))
    assert [x["name"] for x in after["identities"] if x["holds"] is False] == []


@pytest.mark.parametrize("name", NAMES)
def test_same_weights_run_with_the_norms_before_after_and_around(
    client: TestClient, name: str
) -> None:
    placements = ("pre", "post", "sandwich", "output")
    answers = {p: run(client, name, {"norm": {"placement": p}}) for p in placements}
    streams = [stream(answer) for answer in answers.values()]
    for at, one in enumerate(streams):
        assert not any(np.allclose(one, other) for other in streams[:at])
    for placement, answer in answers.items():
        assert answer["model"]["config"]["norm"]["placement"] == placement
        assert all(i["holds"] or i["reason"] for i in answer["identities"])
    assert "blocks.0.attn_sum" in answers["post"]["tensors"]
    assert "blocks.0.norm1_post.out" in answers["sandwich"]["tensors"]


@pytest.mark.parametrize("name", NAMES)
def test_norms_that_are_not_stored_are_filled_and_told(client: TestClient, name: str) -> None:
    model = run(client, name, {"norm": {"placement": "sandwich"}})["model"]
    ends = ["weight", "bias"] if name == "letter-sort" else ["weight"]
    blocks = range(model["config"]["n_layers"])
    assert model["weights"]["filled"] == [
        f"blocks.{at}.norm{x}_post.{end}" for at in blocks for x in (1, 2) for end in ends
    ]
    assert model["weights"]["unused"] == []


def test_filled_norm_divides_and_leaves_the_rest(client: TestClient) -> None:
    tensors = run(client, "letter-sort", {"norm": {"placement": "sandwich"}})["tensors"]
    normalized, out = (
        np.array(tensors[f"blocks.0.norm1_post.{end}"]["data"]) for end in ("normalized", "out")
    )
    assert np.array_equal(normalized, out)


@pytest.mark.parametrize(
    ("name", "config", "unused"),
    [
        ("letter-sort", {"position": {"kind": "rope"}}, ["pos_embed.W_pos"]),
        ("letter-sort", {"position": {"kind": "none"}}, ["pos_embed.W_pos"]),
        ("letter-sort", {"final_norm": False}, ["final_norm.weight", "final_norm.bias"]),
        ("induction", {"ffn": {"kind": "mlp"}}, [f"blocks.{x}.ffn.W_gate" for x in (0, 1)]),
        ("induction", {"tied": True}, ["unembed.W_U"]),
        ("induction", {"position": {"theta": 50, "pairing": "interleaved"}}, []),
    ],
)
def test_stored_tensors_that_are_not_read_are_told(
    client: TestClient, name: str, config: dict[str, Any], unused: list[str]
) -> None:
    weights = run(client, name, config)["model"]["weights"]
    assert weights == {
        "init": None,
        "seed": None,
        "given": [],
        "edited": [],
        "filled": [],
        "unused": unused,
    }


@pytest.mark.parametrize("kind", ["rmsnorm", "none"])
def test_another_kind_of_norm_leaves_what_it_does_not_read(client: TestClient, kind: str) -> None:
    model = run(client, "letter-sort", {"norm": {"kind": kind}})["model"]
    ends = {name.rpartition(".")[2] for name in model["weights"]["unused"]}
    assert ends == ({"bias"} if kind == "rmsnorm" else {"weight", "bias"})
    assert model["config"]["final_norm"] is (kind == "rmsnorm")


def test_fewer_blocks_are_the_first_ones(client: TestClient) -> None:
    whole, first = run(client, "letter-sort"), run(client, "letter-sort", {"n_layers": 1})
    assert "blocks.1.resid_post" not in first["tensors"]
    name = "blocks.0.resid_post"
    assert first["tensors"][name] == whole["tensors"][name]
    assert {n.split(".")[1] for n in first["model"]["weights"]["unused"]} == {"1", "2"}


def test_windows_by_block_change_the_blocks_that_have_them(client: TestClient) -> None:
    config = {"layers": [{}, {"window": 1}, {}]}
    before, after = run(client, "letter-sort"), run(client, "letter-sort", config)
    first, second = ("blocks.0.attn.pattern", "blocks.1.attn.pattern")
    assert after["tensors"][first] == before["tensors"][first]
    assert np.array_equal(np.array(after["tensors"][second]["data"])[0], np.eye(6))


def test_blocks_keep_what_is_not_said(client: TestClient) -> None:
    config = run(client, "induction", {"norm": {"placement": "sandwich"}})["model"]["config"]
    stored = run(client, "induction")["model"]["config"]
    assert config == {**stored, "norm": {**stored["norm"], "placement": "sandwich"}}


@pytest.mark.parametrize("name", NAMES)
def test_post_norm_takes_the_final_norm_away_unless_it_is_asked_for(
    client: TestClient, name: str
) -> None:
    model = run(client, name, {"norm": {"placement": "post"}})["model"]
    assert model["overrides"] == ["norm.placement", "final_norm"]
    assert model["config"]["final_norm"] is False
    ends = ["weight", "bias"] if name == "letter-sort" else ["weight"]
    assert model["weights"]["unused"] == [f"final_norm.{end}" for end in ends]
    kept = run(client, name, {"norm": {"placement": "post"}, "final_norm": True})
    assert kept["model"]["overrides"] == ["norm.placement"]
    assert kept["model"]["weights"]["unused"] == []
    assert "final_norm.out" in kept["tensors"]


def test_broken_rule_is_told_at_what_was_sent(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    response = client.post("/v1/trace", json=asked("induction", {"attention": {"n_heads": 3}}))
    (fault,) = assert_problem(response, "config-rule")["errors"]
    assert (fault["pointer"], fault["code"]) == ("/model/config/attention/n_heads", "config_rule")
    assert fault["detail"].endswith(" n_kv_heads is the stored model's.")


@pytest.mark.parametrize(
    "config", [{}, {"n_layers": 3}, {"norm": {"eps": 1e-5}, "attention": {"bias": True}}]
)
def test_config_that_changes_nothing_is_the_model_itself(
    client: TestClient, config: dict[str, Any]
) -> None:
    plain = client.post("/v1/trace", json=asked("letter-sort"))
    said = client.post("/v1/trace", json=asked("letter-sort", config))
    assert plain.content == said.content


def test_tensor_that_is_lacking_may_be_brought_whole(client: TestClient) -> None:
    config = {"position": {"kind": "learned", "n_positions": 9}}
    table = [[0.125 * (at + x) for x in range(64)] for at in range(9)]
    request = asked("induction", config)
    request["model"]["weights"] = {"tensors": {"pos_embed.W_pos": table}}
    response = client.post("/v1/trace", json=request)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer["model"]["weights"]["given"] == ["pos_embed.W_pos"]
    assert np.array_equal(answer["tensors"]["pos_embed"]["data"], table[:8])


def test_filled_tensor_may_be_edited(client: TestClient) -> None:
    request = asked("letter-sort", {"norm": {"placement": "sandwich"}})
    edit = {"tensor": "blocks.0.norm1_post.weight", "op": "scale", "value": 3}
    request["model"]["weights"] = {"edits": [edit]}
    tensors = client.post("/v1/trace", json=request).json()["tensors"]
    normalized, out = (
        np.array(tensors[f"blocks.0.norm1_post.{end}"]["data"]) for end in ("normalized", "out")
    )
    assert np.allclose(out, 3 * normalized, rtol=1e-6, atol=0)  # one rounding of float32


@pytest.mark.parametrize(
    ("name", "config", "pointer", "needed"),
    [
        ("letter-sort", {"n_layers": 4}, "n_layers", "blocks.3.attn.W_Q"),
        ("letter-sort", {"d_model": 24}, "d_model", "embed.W_E"),
        (
            "letter-sort",
            {"ffn": {"kind": "gated"}},
            "ffn/kind",
            "blocks.0-2.ffn.W_gate (48, 192), which",
        ),
        ("letter-sort", {"position": {"n_positions": 8}}, "position/n_positions", "pos_embed"),
        (
            "letter-sort",
            {"attention": {"sinks": True}},
            "attention/sinks",
            "blocks.0-2.attn.sinks (3)",
        ),
        ("letter-sort", {"encoder": {"attention": {"n_heads": 3}}}, "encoder", "encoder.blocks.0."),
        (
            "induction",
            {"position": {"kind": "learned", "n_positions": 8}},
            "position/kind",
            "position.kind = learned needs pos_embed.W_pos (8, 64), which this model does not "
            "have; give it whole in weights.tensors. Fields that are not sent stay as stored: none "
            "follows another's change.",
        ),
        ("induction", {"attention": {"n_kv_heads": 4}}, "attention/n_kv_heads", "attn.W_K"),
    ],
)
def test_change_that_the_weights_cannot_serve_is_refused_by_name(
    client: TestClient,
    assert_problem: AssertProblem,
    name: str,
    config: dict[str, Any],
    pointer: str,
    needed: str,
) -> None:
    response = client.post("/v1/trace", json=asked(name, config))
    problem = assert_problem(response, "config-rule")
    faults = [(fault["pointer"], fault["code"]) for fault in problem["errors"]]
    assert faults == [(f"/model/config/{pointer}", "weights_cannot_serve")]
    assert needed in problem["errors"][0]["detail"]
    assert response.status_code == 422


def test_name_and_preset_do_not_go_together(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    request = asked("letter-sort", {"n_layers": 1})
    request["model"]["preset"] = "gpt2"
    problem = assert_problem(client.post("/v1/trace", json=request), "invalid-request")
    assert [fault["code"] for fault in problem["errors"]] == ["exactly_one"]


def test_weights_of_a_changed_model_are_not_initialized(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    request = asked("letter-sort", {"n_layers": 1})
    request["model"]["weights"] = {"init": "zeros"}
    problem = assert_problem(client.post("/v1/trace", json=request), "invalid-request")
    assert [fault["code"] for fault in problem["errors"]] == ["init_with_name"]
