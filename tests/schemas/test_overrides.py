"""Changes laid over a config: what stays, what follows, what goes with what was taken away."""

from typing import Any

import pytest

from compute import config_json
from compute.config import ModelConfig
from compute.errors import ConfigError
from schemas import overrides
from schemas.config import ConfigAsked

Json = dict[str, Any]

HEADS = {"n_heads": 3, "d_head": 4, "scale": 0.75, "window": 5}
ROPE = {"kind": "rope", "theta": 50, "scaling": {"kind": "linear", "factor": 2}}
EXPERTS = {"kind": "moe", "n_experts": 5, "top_k": 2, "d_shared": 3}
CONFIGS: dict[str, Json] = {
    "plain": {},
    "rope by block": {
        "position": ROPE,
        "n_layers": 3,
        "layers": [{"theta": None}, {"window": None}, {"scaling": {"kind": "none"}, "scale": 1}],
    },
    "learned by block": {
        "position": {"kind": "learned", "n_positions": 7},
        "n_layers": 2,
        "layers": [{}, {"window": 2}],
    },
    "experts": {"ffn": EXPERTS},
    "gated": {"ffn": {"kind": "gated", "bias": {"in": False}}, "norm": {"kind": "rmsnorm"}},
    "parallel": {"topology": "parallel", "norm": {"shared": True, "bias": False}},
    "bert": {"vocab": 7, "tied": True, "mlm_head": True, "embed_norm": True, "token_types": 2},
    "gemma": {"vocab": 7, "logit_softcap": 3, "norm": {"placement": "sandwich"}},
    "own final norm": {"final_norm": True},
    "post": {"vocab": 7, "norm": {"placement": "post"}},
    "post, final norm": {"vocab": 7, "norm": {"placement": "post"}, "final_norm": True},
    "stream": {"vocab": 7, "readout": False},
    "buckets": {"position": {"kind": "t5_bias", "n_buckets": 8, "bidirectional": True}},
    "encoder": {"vocab": 7, "encoder": {"attention": HEADS, "position": ROPE, "n_layers": 2}},
    "no attention": {"attention": {"kind": "none"}},
    "no norm": {"norm": {"kind": "none"}},
}


def config(name: str) -> ModelConfig:
    asked = {"d_model": 12, "attention": HEADS, **CONFIGS[name]}
    return ConfigAsked.model_validate(asked).to_compute()


def over(name: str, changes: Json) -> ModelConfig:
    """The config of a name with changes laid over it, as over a stored model's."""
    base = overrides.written(config(name))
    return overrides.merged(base, ConfigAsked.model_validate(changes)).to_compute()


@pytest.mark.parametrize("name", CONFIGS)
def test_resolved_config_that_is_written_out_resolves_to_itself(name: str) -> None:
    stored = config(name)
    assert config_json.as_json(over(name, {})) == config_json.as_json(stored)
    assert list(overrides.changed(overrides.written(stored), ConfigAsked())) == []


@pytest.mark.parametrize("name", CONFIGS)
def test_what_an_answer_says_changes_nothing(name: str) -> None:
    stored = config_json.as_json(config(name))
    assert config_json.as_json(over(name, stored)) == stored


def test_nothing_that_is_stored_follows_a_change() -> None:
    made = over("plain", {"d_model": 24, "attention": {"n_heads": 6}})
    assert (made.attention.n_kv_heads, made.attention.d_head) == (3, 4)
    assert (made.ffn.d_ff, made.attention.scale) == (48, 0.75)


@pytest.mark.parametrize(
    ("name", "changes", "field", "expected"),
    [
        ("gated", {"norm": {"kind": "layernorm"}}, "norm.bias", True),
        ("gated", {"norm": {"kind": "none"}}, "final_norm", False),
        ("bert", {"norm": {"kind": "rmsnorm"}}, "embed_norm", True),
        ("gated", {"ffn": {"kind": "mlp"}}, "ffn.bias.gate", False),
        ("gated", {"ffn": {"kind": "mlp"}}, "ffn.bias.in_", False),
        ("gated", {"ffn": {"kind": "mlp"}}, "ffn.d_ff", 48),
        ("parallel", {"topology": "sequential"}, "norm.shared", False),
        ("parallel", {"topology": "sequential"}, "norm.bias", False),
        ("bert", {"vocab": None}, "tied", False),
        ("bert", {"vocab": None}, "mlm_head", False),
        ("bert", {"readout": False}, "mlm_head", False),
        ("bert", {"readout": False}, "vocab", 7),
        ("gemma", {"vocab": None}, "logit_softcap", None),
        ("gemma", {"norm": {"placement": "post"}}, "final_norm", False),
        ("gemma", {"norm": {"placement": "post"}, "final_norm": True}, "final_norm", True),
        ("gemma", {"norm": {"placement": "output"}}, "final_norm", True),
        ("gemma", {"norm": {"kind": "layernorm"}}, "final_norm", True),
        ("own final norm", {"norm": {"placement": "post"}}, "final_norm", True),
        ("post", {"norm": {"placement": "pre"}}, "final_norm", False),
        ("post, final norm", {"norm": {"placement": "post"}}, "final_norm", True),
        ("post, final norm", {"norm": {"placement": "pre"}}, "final_norm", True),
        ("encoder", {"norm": {"placement": "post"}}, "encoder.final_norm", True),
        ("encoder", {"encoder": {"norm": {"placement": "post"}}}, "encoder.final_norm", False),
        ("encoder", {"encoder": {"norm": {"placement": "post"}}}, "final_norm", True),
        ("plain", {"vocab": 7}, "readout", True),
        ("bert", {"vocab": None, "readout": True}, "readout", False),
        ("stream", {"n_layers": 2}, "readout", False),
        ("plain", {"encoder": {"attention": {"n_heads": 2}}}, "cross_attention", True),
        ("encoder", {"encoder": None}, "cross_attention", True),
        ("encoder", {"encoder": {"norm": {"eps": 0.5}}}, "encoder.attention.scale", 0.75),
        ("encoder", {"encoder": {"norm": {"eps": 0.5}}}, "encoder.norm.eps", 0.5),
        ("encoder", {"encoder": {"norm": {"kind": "none"}}}, "encoder.final_norm", False),
        ("rope by block", {"position": {"kind": "alibi"}}, "position.alibi_rule", "bloom"),
        (
            "rope by block",
            {"position": {"scaling": {"kind": "dynamic", "original_positions": 9}}},
            "position.scaling.factor",
            2.0,
        ),
    ],
)
def test_what_still_means_something_is_kept_and_the_rest_follows(
    name: str, changes: Json, field: str, expected: object
) -> None:
    found: object = over(name, changes)
    for part in field.split("."):
        found = getattr(found, part)
    assert found == expected


def test_a_change_reaches_every_block_that_has_the_field() -> None:
    layers = over("rope by block", {"attention": {"window": 3}, "position": {"theta": 9}}).layers
    assert [layer.window for layer in layers] == [3, 3, 3]
    assert [layer.theta for layer in layers] == [None, 9, 9]


def test_blocks_lose_their_rotation_with_all_others() -> None:
    layers = over("rope by block", {"position": {"kind": "none"}}).layers
    assert [layer.window for layer in layers] == [5, None, 5]
    assert {layer.theta for layer in layers} == {None}


@pytest.mark.parametrize(("blocks", "windows"), [(2, [5, None]), (4, [5, None, 5, 5])])
def test_blocks_keep_what_is_their_own_where_there_are_fewer_or_more(
    blocks: int, windows: list[int | None]
) -> None:
    layers = over("rope by block", {"n_layers": blocks}).layers
    assert [layer.window for layer in layers] == windows


def test_one_block_that_has_nothing_of_its_own_has_no_layers() -> None:
    assert over("learned by block", {"n_layers": 1}).layers == ()


def test_more_blocks_than_can_be_listed_are_alike() -> None:
    assert over("rope by block", {"n_layers": 1 << 20}).layers == ()


def test_layers_that_are_given_stand_in_the_place_of_others() -> None:
    layers = over("rope by block", {"layers": [{}, {}, {"window": 1}]}).layers
    assert [layer.window for layer in layers] == [5, 5, 1]
    assert layers[0].theta == 50


def test_layers_go_with_attention() -> None:
    changes = {"attention": {"kind": "none"}, "position": {"kind": "none"}}
    assert over("rope by block", changes).layers == ()


def test_field_of_another_kind_is_refused_in_its_place() -> None:
    with pytest.raises(ConfigError) as refused:
        over("encoder", {"encoder": {"position": {"n_positions": 3}}})
    assert [fault.place for fault in refused.value.faults] == [
        ("encoder", "position", "n_positions")
    ]


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("plain", {"attention": {"window": 5, "scale": 0.5}}, ["attention.scale"]),
        ("plain", {"attention": {"window": None}}, ["attention.window"]),
        ("gated", {"ffn": {"bias": {"in": True}}}, ["ffn.bias.in"]),
        ("rope by block", {"position": {"scaling": {"factor": 4}}}, ["position.scaling.factor"]),
        ("learned by block", {"layers": [{}, {"window": 2}]}, []),
        ("learned by block", {"layers": [{}, {"window": 3}]}, ["layers"]),
        ("encoder", {"encoder": {"n_layers": 1}}, ["encoder.n_layers"]),
        ("gemma", {"norm": {"placement": "post"}}, ["norm.placement", "final_norm"]),
        ("gemma", {"norm": {"placement": "post"}, "final_norm": True}, ["norm.placement"]),
        ("post", {"norm": {"placement": "pre"}}, ["norm.placement"]),
        (
            "encoder",
            {"encoder": {"norm": {"placement": "post"}}},
            ["encoder.norm.placement", "encoder.final_norm"],
        ),
        ("encoder", {"encoder": None}, ["encoder"]),
        ("plain", {"encoder": {"attention": {"n_heads": 2}}}, ["encoder"]),
    ],
)
def test_changed_fields_are_told_by_their_names(
    name: str, changes: Json, expected: list[str]
) -> None:
    base = overrides.written(config(name))
    assert list(overrides.changed(base, ConfigAsked.model_validate(changes))) == expected


PRESET = {"d_model": 12, "attention": {"n_heads": 3}, "vocab": 7}


@pytest.mark.parametrize(("placement", "expected"), [("post", False), ("sandwich", True)])
def test_final_norm_that_a_preset_leaves_unsaid_follows_and_is_not_told(
    placement: str, expected: bool
) -> None:
    base = ConfigAsked.model_validate(PRESET)
    changes = ConfigAsked.model_validate({"norm": {"placement": placement}})
    assert overrides.merged(base, changes).to_compute().final_norm is expected
    assert list(overrides.changed(base, changes)) == ["norm.placement"]
