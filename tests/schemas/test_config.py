"""A config as asked for: everything but d_model and n_heads may be left out."""

import pytest

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
    "norm": {"kind": "layernorm", "placement": "pre", "eps": 1e-5, "gain_offset": 0.0},
    "position": {"kind": "none"},
    "vocab": None,
    "tied": False,
    "unembed_bias": False,
    "final_norm": False,
}


def resolved(**asked: object) -> dict[str, object]:
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
