"""A config as asked for: everything but d_model and n_heads may be left out."""

from math import log
from typing import Any

import pytest
from pydantic import ValidationError

from compute import config_json
from compute.errors import ConfigError
from schemas.config import ConfigAsked

ARTICLES_BLOCK = {
    "d_model": 12,
    "n_layers": 1,
    "attention": {
        "kind": "softmax",
        "n_heads": 3,
        "n_kv_heads": 3,
        "d_head": 4,
        "d_value": 4,
        "scale": 0.5,
        "softcap": None,
        "qk_norm": "none",
        "sinks": False,
        "mask": "causal",
        "window": None,
        "bias": {"q": False, "k": False, "v": False, "o": False},
    },
    "ffn": {
        "kind": "mlp",
        "d_ff": 48,
        "activation": "gelu",
        "bias": {"in": True, "gate": False, "out": True},
    },
    "norm": {
        "kind": "layernorm",
        "placement": "pre",
        "eps": 1e-5,
        "gain_offset": 0.0,
        "bias": True,
        "shared": False,
    },
    "position": {"kind": "none"},
    "vocab": None,
    "tied": False,
    "unembed_bias": False,
    "final_norm": False,
    "topology": "sequential",
    "residual_multiplier": 1.0,
    "cross_attention": False,
    "embed_multiplier": 1.0,
    "embed_norm": False,
    "token_types": 0,
    "readout": False,
    "mlm_head": False,
    "logit_multiplier": 1.0,
    "logit_softcap": None,
    "layers": [],
    "encoder": None,
}
UNSCALED = {"kind": "none"}
YARN = {"kind": "yarn", "factor": 4, "original_positions": 32}


def resolved(**asked: object) -> dict[str, Any]:
    """The config that is made of what was asked for."""
    given = {"d_model": 12, "attention": {"n_heads": 3}, **asked}
    return config_json.as_json(ConfigAsked.model_validate(given).to_compute())


def test_what_is_left_out_is_the_articles_block() -> None:
    assert resolved() == ARTICLES_BLOCK


def test_a_gated_ffn_has_a_gate_bias_by_default() -> None:
    assert resolved(ffn={"kind": "gated"})["ffn"] == {
        "kind": "gated",
        "d_ff": 48,
        "activation": "gelu",
        "bias": {"in": True, "gate": True, "out": True},
    }


@pytest.mark.parametrize("every", [True, False])
def test_one_flag_stands_for_all_biases(every: bool) -> None:
    asked = resolved(attention={"n_heads": 3, "bias": every}, ffn={"kind": "gated", "bias": every})
    assert asked["attention"]["bias"] == dict.fromkeys("qkvo", every)
    assert asked["ffn"]["bias"] == dict.fromkeys(("in", "gate", "out"), every)


def test_biases_left_out_of_an_object_have_their_defaults() -> None:
    asked = resolved(attention={"n_heads": 3, "bias": {"q": True}}, ffn={"bias": {"out": False}})
    assert asked["attention"]["bias"] == {"q": True, "k": False, "v": False, "o": False}
    assert asked["ffn"]["bias"] == {"in": True, "gate": False, "out": False}


def test_rope_turns_whole_heads_in_halves_by_default() -> None:
    assert resolved(position={"kind": "rope"})["position"] == {
        "kind": "rope",
        "theta": 10000.0,
        "rotary_dim": 4,
        "pairing": "half",
        "scaling": UNSCALED,
    }


def test_experts_are_gated_share_their_weights_and_have_no_biases_by_default() -> None:
    assert resolved(ffn={"kind": "moe", "n_experts": 5, "top_k": 2})["ffn"] == {
        "kind": "moe",
        "d_ff": 48,
        "activation": "gelu",
        "bias": {"in": False, "gate": False, "out": False},
        "n_experts": 5,
        "top_k": 2,
        "expert": "gated",
        "renormalize": True,
        "router_bias": False,
        "d_shared": 0,
        "shared_gate": False,
    }


@pytest.mark.parametrize(
    ("expert", "said", "expected"),
    [
        ("gated", True, (True, True, True)),
        ("mlp", True, (True, False, True)),
        ("gated", {"in": True}, (True, True, False)),
        ("gated", {"in": True, "gate": False}, (True, False, False)),
        ("gated", {"out": True}, (False, False, True)),
    ],
)
def test_biases_of_experts_that_are_asked_for_exist(
    expert: str, said: object, expected: tuple[bool, ...]
) -> None:
    ffn = {"kind": "moe", "n_experts": 5, "top_k": 2, "expert": expert, "bias": said}
    assert tuple(resolved(ffn=ffn)["ffn"]["bias"].values()) == expected


@pytest.mark.parametrize(
    ("scaling", "expected"),
    [
        ({"kind": "linear", "factor": 2}, {"kind": "linear", "factor": 2.0}),
        (
            {"kind": "dynamic", "factor": 2, "original_positions": 8},
            {"kind": "dynamic", "factor": 2.0, "original_positions": 8},
        ),
        (
            YARN,
            {
                **YARN,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "attention_factor": 0.1 * log(4) + 1,
            },
        ),
        ({**YARN, "attention_factor": 1}, {**YARN, "beta_fast": 32.0, "beta_slow": 1.0,
                                           "attention_factor": 1.0}),
        (
            {"kind": "llama3", "factor": 8, "original_positions": 32},
            {
                "kind": "llama3",
                "factor": 8.0,
                "original_positions": 32,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
            },
        ),
    ],
)  # fmt: skip
def test_scaling_of_rope_fills_in_what_its_kind_has(
    scaling: dict[str, object], expected: dict[str, object]
) -> None:
    assert resolved(position={"kind": "rope", "scaling": scaling})["position"]["scaling"] == (
        expected
    )


@pytest.mark.parametrize("mask", ["causal", "full"])
def test_buckets_look_both_ways_where_attention_does(mask: str) -> None:
    asked = resolved(attention={"n_heads": 3, "mask": mask}, position={"kind": "t5_bias"})
    assert asked["position"] == {
        "kind": "t5_bias",
        "n_buckets": 32,
        "max_distance": 128,
        "bidirectional": mask == "full",
    }


def test_alibi_takes_blooms_rule_by_default() -> None:
    assert resolved(position={"kind": "alibi"})["position"] == {
        "kind": "alibi",
        "alibi_rule": "bloom",
    }


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"vocab": 17}, True),
        ({"vocab": 17, "norm": {"kind": "rmsnorm"}}, True),
        ({"vocab": 17, "norm": {"placement": "post"}}, False),
        ({"vocab": 17, "norm": {"kind": "none"}}, False),
        ({"vocab": 17, "final_norm": False}, False),
        ({"final_norm": True}, True),
    ],
)
def test_a_pre_norm_model_with_a_readout_has_a_final_norm_unless_asked_otherwise(
    asked: dict[str, object], expected: bool
) -> None:
    assert resolved(**asked)["final_norm"] is expected


def test_a_width_of_its_own_decides_value_width_and_scale() -> None:
    attention = resolved(attention={"n_heads": 5, "d_head": 16})["attention"]
    assert (attention["d_value"], attention["scale"]) == (16, 0.25)


def test_a_part_that_is_off_has_only_its_kind() -> None:
    asked = resolved(ffn={"kind": "none"}, norm={"kind": "none"})
    assert asked["ffn"] == {"kind": "none"}
    assert asked["norm"] == {"kind": "none"}


ROPE = {"kind": "rope", "theta": 100, "scaling": {"kind": "linear", "factor": 2}}
LINEAR = {"kind": "linear", "factor": 2.0}


def layers(*own: dict[str, object], **asked: object) -> object:
    """The layers of a config with RoPE, a window of 4 and these objects."""
    attention = {"n_heads": 3, "window": 4}
    return resolved(
        **{
            "attention": attention,
            "position": ROPE,
            "n_layers": len(own),
            "layers": [*own],
            **asked,
        }
    )["layers"]


def test_block_has_what_the_config_says_where_it_says_nothing_itself() -> None:
    alike = {"window": 4, "scale": 0.5, "theta": 100.0, "scaling": LINEAR}
    assert layers({}, {"window": 2}, {"scale": 0.25}, {"theta": 7}, {"scaling": YARN}) == [
        alike,
        {**alike, "window": 2},
        {**alike, "scale": 0.25},
        {**alike, "theta": 7.0},
        {**alike, "scaling": {**YARN, "beta_fast": 32.0, "beta_slow": 1.0,
                              "attention_factor": 0.1 * log(4) + 1}},
    ]  # fmt: skip


def test_null_is_no_window_and_no_rotation() -> None:
    first, second = layers({"window": None}, {"theta": None})
    assert (first["window"], first["theta"]) == (None, 100.0)
    assert (second["window"], second["theta"]) == (4, None)


def test_scale_that_is_null_is_the_configs() -> None:
    assert layers({"scale": None}, {"window": 1})[0]["scale"] == 0.5


@pytest.mark.parametrize("own", [{}, {"window": 4}, {"theta": 100, "scaling": LINEAR}])
def test_blocks_that_are_alike_have_no_layers(own: dict[str, object]) -> None:
    assert layers(own, own) == []


def test_blocks_may_say_that_they_turn_nothing_where_none_does() -> None:
    own = {"theta": None, "scaling": UNSCALED, "window": 2}
    assert layers(own, {}, position={"kind": "none"})[0]["window"] == 2


ENCODER = {"attention": {"n_heads": 2}}


def test_encoder_has_the_models_width_sees_all_and_ends_with_a_norm() -> None:
    asked = resolved(encoder={**ENCODER, "n_layers": 2, "norm": {"kind": "rmsnorm"}}, vocab=7)
    encoder = asked["encoder"]
    assert (asked["cross_attention"], encoder["cross_attention"]) == (True, False)
    assert (encoder["d_model"], encoder["n_layers"], encoder["vocab"]) == (12, 2, None)
    assert (encoder["attention"]["mask"], asked["attention"]["mask"]) == ("full", "causal")
    assert encoder["final_norm"]
    assert encoder["encoder"] is None


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, True),
        ({"norm": {"placement": "post"}}, False),
        ({"norm": {"kind": "none"}}, False),
        ({"final_norm": False}, False),
        ({"norm": {"placement": "post"}, "final_norm": True}, True),
    ],
)
def test_encoder_ends_with_a_norm_unless_its_last_block_did(
    said: dict[str, object], expected: bool
) -> None:
    assert resolved(encoder={**ENCODER, **said})["encoder"]["final_norm"] is expected


def test_mask_of_an_encoder_may_be_causal() -> None:
    attention = {"n_heads": 2, "mask": "causal"}
    assert resolved(encoder={"attention": attention})["encoder"]["attention"]["mask"] == "causal"


def test_cross_attention_may_do_without_an_encoder() -> None:
    asked = resolved(cross_attention=True)
    assert (asked["cross_attention"], asked["encoder"]) == (True, None)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"encoder": {**ENCODER, "position": {"kind": "rope"}}, "vocab": 7},
        {"position": ROPE, "n_layers": 2, "layers": [{"theta": None}, {"window": 3}]},
        {"position": {"kind": "learned", "n_positions": 3}, "n_layers": 2,
         "layers": [{}, {"window": 3}]},
        {"ffn": {"kind": "moe", "n_experts": 5, "top_k": 2, "bias": True}},
        {"norm": {"kind": "rmsnorm", "placement": "sandwich"}, "embed_norm": True},
        {"attention": {"kind": "none"}},
    ],
)  # fmt: skip
def test_what_an_answer_says_may_be_asked_for(asked: dict[str, object]) -> None:
    answered = resolved(**asked)
    assert resolved(**answered) == answered


@pytest.mark.parametrize(
    ("asked", "places"),
    [
        ({"ffn": {"kind": "moe"}}, [("ffn", "n_experts"), ("ffn", "top_k")]),
        (
            {"position": {"kind": "rope", "scaling": {"kind": "yarn"}}},
            [("position", "scaling", "factor"), ("position", "scaling", "original_positions")],
        ),
        (
            {"position": {"kind": "rope", "scaling": {"kind": "linear"}}},
            [("position", "scaling", "factor")],
        ),
        (
            {
                "position": {"kind": "rope"},
                "layers": [{"scaling": {"kind": "llama3", "factor": 2}}],
            },
            [("layers", 0, "scaling", "original_positions")],
        ),
        (
            {"attention": {}, "encoder": {"ffn": {"kind": "moe", "top_k": 1}}},
            [
                ("attention", "n_heads"),
                ("encoder", "attention", "n_heads"),
                ("encoder", "ffn", "n_experts"),
            ],
        ),
    ],
)
def test_what_is_needed_and_not_there_is_told_by_its_place(
    asked: dict[str, object], places: list[tuple[str | int, ...]]
) -> None:
    with pytest.raises(ConfigError) as refused:
        resolved(**asked)
    assert [(fault.code, fault.place) for fault in refused.value.faults] == [
        ("missing", place) for place in places
    ]


@pytest.mark.parametrize(
    ("asked", "place", "detail"),
    [
        (
            {"position": {"kind": "rope", "scaling": {"factor": 2}}},
            ("position", "scaling", "factor"),
            "position.scaling.kind = none has no factor; leave it out.",
        ),
        (
            {"position": {"kind": "alibi", "scaling": {"kind": "none"}}},
            ("position", "scaling"),
            "position.kind = alibi has no scaling; leave it out.",
        ),
        (
            {"encoder": {**ENCODER, "ffn": {"top_k": 2}}},
            ("encoder", "ffn", "top_k"),
            "encoder.ffn.kind = mlp has no top_k; leave it out.",
        ),
        (
            {"encoder": {**ENCODER, "layers": [{"theta": 2}]}},
            ("encoder", "layers", 0, "theta"),
            "encoder.position.kind = none has no theta; leave it out.",
        ),
        (
            {"layers": [{"scaling": LINEAR}]},
            ("layers", 0, "scaling"),
            "position.kind = none has no scaling; leave it out.",
        ),
        (
            {"position": ROPE, "layers": [{"scaling": {**LINEAR, "beta_fast": 2}}]},
            ("layers", 0, "scaling", "beta_fast"),
            "layers.0.scaling.kind = linear has no beta_fast; leave it out.",
        ),
        (
            {"norm": {"kind": "rmsnorm", "bias": False}},
            ("norm", "bias"),
            "norm.kind = rmsnorm has no bias; leave it out.",
        ),
    ],
)
def test_field_that_its_kind_does_not_have_is_refused_with_the_reason(
    asked: dict[str, object], place: tuple[str | int, ...], detail: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        resolved(**asked)
    assert [(f.code, f.place, f.detail) for f in refused.value.faults] == [
        ("config_rule", place, detail)
    ]


def test_layers_of_another_number_than_blocks_are_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        resolved(n_layers=3, layers=[{"window": 2}])
    (fault,) = refused.value.faults
    assert (fault.code, fault.place) == ("config_rule", ("layers",))
    assert (fault.expected, fault.got) == (3, 1)


def test_encoder_that_nothing_reads_is_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        resolved(encoder=ENCODER, cross_attention=False)
    assert [fault.code for fault in refused.value.faults] == ["config_rule"]


@pytest.mark.parametrize(
    "encoder", [{"vocab": 4}, {"tied": True}, {"encoder": ENCODER}, {"cross_attention": True}]
)
def test_encoder_has_neither_readout_nor_encoder(encoder: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as refused:
        resolved(encoder={**ENCODER, **encoder})
    assert [error["type"] for error in refused.value.errors()] == ["extra_forbidden"]


@pytest.mark.parametrize(
    ("asked", "places"),
    [
        ({"attention": {}}, [("attention", "n_heads")]),
        ({"attention": {"n_heads": 5}}, [("attention", "n_heads")]),
        ({"attention": {"n_heads": 3, "n_kv_heads": 2}}, [("attention", "n_kv_heads")]),
        ({"attention": {"kind": "none", "n_heads": 3}}, [("attention", "n_heads")]),
        ({"position": {"kind": "none", "theta": 10.0}}, [("position", "theta")]),
        (
            {"attention": {}, "position": {"kind": "alibi", "theta": 10.0, "pairing": "half"}},
            [("attention", "n_heads"), ("position", "pairing"), ("position", "theta")],
        ),
        ({"position": {"kind": "learned"}}, [("position", "n_positions")]),
        ({"tied": True, "unembed_bias": True}, [("tied",), ("unembed_bias",)]),
    ],
)
def test_broken_rules_are_refused_at_their_places_all_at_once(
    asked: dict[str, object], places: list[tuple[str, ...]]
) -> None:
    with pytest.raises(ConfigError) as refused:
        resolved(**asked)
    assert [fault.place for fault in refused.value.faults] == places
