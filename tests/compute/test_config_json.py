"""A config as JSON and back: nothing lost, and reading is strict."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

import runs
from cases import small
from compute import config_json
from compute.errors import ConfigError, Place

ROTARY = small.model(
    12, attention=small.attention(3, 4), ffn=small.mlp(5), norm=small.norm("layernorm")
) | {"position": small.rope(4), "vocab": 7}
"""Only what must be there."""

YARN = {
    "kind": "yarn",
    "factor": 4.0,
    "original_positions": 64,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "attention_factor": 1.5,
}
OWN = {"window": 3, "scale": 0.5, "theta": 1e6, "scaling": YARN}
ENCODER = small.model(
    12,
    attention=small.attention(2, 5),
    ffn=small.moe(5, 4, 2, expert="gated", d_shared=3, shared_gate=True, router_bias=True),
    norm=small.norm("rmsnorm", placement="sandwich"),
    position={"kind": "t5_bias", "n_buckets": 8, "max_distance": 20, "bidirectional": True},
)
FULL = config_json.as_json(
    config_json.from_json(
        ROTARY
        | {
            "attention": ROTARY["attention"] | {"softcap": 50.0, "qk_norm": "head", "sinks": True},
            "norm": ROTARY["norm"] | {"bias": False},
            "position": small.rope(4, scaling=YARN),
            "n_layers": 2,
            "residual_multiplier": 0.5,
            "cross_attention": True,
            "embed_multiplier": 3.0,
            "embed_norm": True,
            "token_types": 2,
            "mlm_head": True,
            "logit_multiplier": 0.25,
            "logit_softcap": 30.0,
            "layers": [OWN, OWN | {"theta": None, "window": None}],
            "encoder": ENCODER,
        }
    )
)
"""Every field of every part, optional ones too, none at its default where that can be."""

OPTIONAL = {
    *(("attention", name) for name in ("softcap", "qk_norm", "sinks")),
    *(("norm", name) for name in ("bias", "shared")),
    ("position", "scaling"),
    *((name,) for name in ("topology", "residual_multiplier", "cross_attention")),
    *((name,) for name in ("embed_multiplier", "embed_norm", "token_types", "readout")),
    *((name,) for name in ("mlm_head", "logit_multiplier", "logit_softcap", "layers", "encoder")),
}
"""The fields that only some arrangements have."""


def misfit(raw: Any) -> Place:  # noqa: ANN401 - what no config is
    with pytest.raises(ConfigError) as refused:
        config_json.from_json(raw)
    (fault,) = refused.value.faults
    assert fault.detail.startswith(name_of(fault.place) or "the config")
    return fault.place


def places(raw: Any, above: Place = ()) -> Iterator[Place]:  # noqa: ANN401 - JSON
    """Where each field of a config is, parts and entries of lists too."""
    entries = raw.items() if isinstance(raw, dict) else enumerate(raw)
    for key, value in entries:
        if isinstance(raw, dict):
            yield (*above, key)
        if isinstance(value, dict | list):
            yield from places(value, (*above, key))


def name_of(place: Place) -> str:
    return ".".join(map(str, place))


def is_optional(place: Place) -> bool:
    own = place[1:] if place[0] == "encoder" and len(place) > 1 else place
    return own in OPTIONAL


def part_of(raw: dict[str, Any], place: Place) -> dict[str, Any]:
    found: Any = raw
    for key in place[:-1]:
        found = found[key]
    assert isinstance(found, dict)
    return found


def test_500_configs_come_back_as_they_were() -> None:
    for seed in range(500):
        raw = runs.case_of(seed).config
        config = config_json.from_json(raw)
        assert config_json.as_json(config) == raw
        through_text = json.loads(json.dumps(config_json.as_json(config)))
        assert config_json.from_json(through_text) == config


@pytest.mark.parametrize("place", list(places(FULL)), ids=name_of)
def test_a_missing_field_is_refused_by_its_place(place: Place) -> None:
    if is_optional(place):
        return
    raw = deepcopy(FULL)
    del part_of(raw, place)[str(place[-1])]
    known = len(place) - (place[-1] == "kind")  # without its kind a part lacks other fields too
    assert misfit(raw)[:known] == place[:known]


@pytest.mark.parametrize("place", list(places(ROTARY)), ids=name_of)
def test_a_config_of_what_must_be_there_has_nothing_else(place: Place) -> None:
    assert not is_optional(place)


@pytest.mark.parametrize("name", sorted({place[-1] for place in OPTIONAL}))
def test_every_optional_field_is_one_that_is_written(name: str) -> None:
    assert name in {place[-1] for place in places(FULL)}


def test_an_optional_field_that_is_left_out_is_off() -> None:
    least = config_json.as_json(config_json.from_json(ROTARY))
    rope = least["position"]
    assert rope == ROTARY["position"] | {"scaling": {"kind": "none"}}
    attention = {"softcap": None, "qk_norm": "none", "sinks": False}
    assert least["attention"] == ROTARY["attention"] | attention
    assert least["norm"] == ROTARY["norm"] | {"bias": True, "shared": False}
    assert {name: value for name, value in least.items() if (name,) in OPTIONAL} == {
        "topology": "sequential",
        "residual_multiplier": 1.0,
        "cross_attention": False,
        "embed_multiplier": 1.0,
        "embed_norm": False,
        "token_types": 0,
        "readout": True,
        "mlm_head": False,
        "logit_multiplier": 1.0,
        "logit_softcap": None,
        "layers": [],
        "encoder": None,
    }


@pytest.mark.parametrize("place", sorted(OPTIONAL, key=name_of), ids=name_of)
def test_each_optional_field_may_be_left_out_alone(place: Place) -> None:
    raw = config_json.as_json(config_json.from_json(ROTARY))
    del part_of(raw, place)[str(place[-1])]
    assert config_json.from_json(raw) == config_json.from_json(ROTARY)


def test_a_config_of_every_field_comes_back_as_it_was() -> None:
    assert config_json.as_json(config_json.from_json(json.loads(json.dumps(FULL)))) == FULL


FLOATS = (
    *("scale", "theta", "eps", "gain_offset", "softcap", "residual_multiplier"),
    *("embed_multiplier", "logit_multiplier", "logit_softcap", "factor", "beta_fast"),
    *("beta_slow", "attention_factor"),
)
FLAGS = (
    *("q", "k", "v", "o", "in", "gate", "out", "tied", "unembed_bias", "final_norm", "sinks"),
    *("shared", "cross_attention", "embed_norm", "readout", "mlm_head", "renormalize"),
    *("router_bias", "shared_gate", "bidirectional"),
)
NULLS = ("window", "vocab", "softcap", "logit_softcap", "theta", "encoder")
WHOLE = ("d_model", "n_layers")


def allowed_types(place: Place) -> set[type]:
    """What a field takes beside a whole number."""
    name, part = place[-1], place[-2] if len(place) > 1 else None
    types = {float} if name in FLOATS else {bool} if name in FLAGS else set()
    if name == "theta" and part == "position":  # a block's own may be null
        return types
    if name == "bias":  # a norm's flag; of attention and ffn a part
        return {bool} if part == "norm" else set()
    types |= {type(None)} if name in NULLS else set()
    return types | ({list} if name == "layers" else set())


@pytest.mark.parametrize("place", list(places(FULL)), ids=name_of)
@pytest.mark.parametrize("wrong", ["7", 1.5, True, [], {}, None, -0.0], ids=repr)
def test_a_wrong_type_is_refused_by_its_place(place: Place, wrong: object) -> None:
    if type(wrong) in allowed_types(place):
        return
    raw = deepcopy(FULL)
    part_of(raw, place)[str(place[-1])] = wrong
    assert misfit(raw)[: len(place) - 1] == place[:-1]
    if wrong != {} and place[-1] != "kind":
        assert misfit(raw) == place


@pytest.mark.parametrize(
    "place",
    [
        ("extra",),
        *((part, "extra") for part in ("attention", "ffn", "norm", "position", "encoder")),
        *(("position", "scaling", "extra"), ("layers", 0, "extra")),
        *(("layers", 1, "scaling", "extra"), ("encoder", "ffn", "extra")),
    ],
    ids=name_of,
)
def test_an_unknown_field_is_refused_by_its_place(place: Place) -> None:
    raw = deepcopy(FULL)
    part_of(raw, place)[str(place[-1])] = 1
    assert misfit(raw) == place


@pytest.mark.parametrize(
    ("part", "raw", "field"),
    [
        ("attention", {"kind": "none", "n_heads": 3}, "n_heads"),
        ("ffn", {"kind": "none", "d_ff": 3}, "d_ff"),
        ("norm", {"kind": "none", "eps": 1e-5}, "eps"),
        ("position", {"kind": "none", "theta": 1e4}, "theta"),
        ("position", {"kind": "learned", "n_positions": 3, "pairing": "half"}, "pairing"),
        ("position", {"kind": "alibi"}, "alibi_rule"),
        ("position", {"kind": "alibi", "alibi_rule": "bloom", "scaling": {}}, "scaling"),
        ("ffn", small.mlp(5) | {"n_experts": 3}, "n_experts"),
        ("ffn", small.mlp(5, kind="gated") | {"top_k": 3}, "top_k"),
        ("norm", small.norm("rmsnorm", bias=True), "bias"),
    ],
)
def test_a_field_that_does_not_apply_to_the_kind_is_refused(
    part: str, raw: dict[str, Any], field: str
) -> None:
    assert misfit(ROTARY | {part: raw}) == (part, field)


@pytest.mark.parametrize("part", ["attention", "ffn", "norm", "position"])
def test_an_unknown_kind_is_what_is_refused(part: str) -> None:
    assert misfit(ROTARY | {part: {"kind": "linear"}}) == (part, "kind")


def test_what_is_no_object_is_refused() -> None:
    assert misfit([]) == ()
    assert misfit(ROTARY | {"norm": 3}) == ("norm",)


def test_a_whole_number_may_stand_for_a_float() -> None:
    raw = deepcopy(ROTARY)
    raw["position"]["theta"] = 10000
    theta = config_json.from_json(raw).position.theta
    assert (theta, type(theta)) == (10000.0, float)


@pytest.mark.parametrize(
    ("scaling", "field"),
    [
        ({"kind": "none", "factor": 2.0}, "factor"),
        ({"kind": "linear", "factor": 2.0, "original_positions": 8}, "original_positions"),
        ({"kind": "dynamic", "factor": 2.0}, "original_positions"),
        (YARN | {"low_freq_factor": 1.0}, "low_freq_factor"),
        ({"kind": "ntk"}, "kind"),
    ],
)
def test_a_scaling_has_the_fields_of_its_kind(scaling: dict[str, Any], field: str) -> None:
    raw = ROTARY | {"position": small.rope(4, scaling=scaling)}
    assert misfit(raw) == ("position", "scaling", field)


def test_no_key_heads_at_all_are_refused_and_not_divided_by() -> None:
    raw = deepcopy(ROTARY)
    raw["attention"]["n_kv_heads"] = 0
    with pytest.raises(ConfigError):
        config_json.from_json(raw)


def test_what_has_no_vocabulary_reads_nothing_out() -> None:
    config = config_json.from_json(FULL)
    written = config_json.as_json(config)
    assert (written["readout"], written["encoder"]["readout"]) == (True, False)
    bare = small.model(12, attention=small.attention(3, 4))
    for said in ({}, {"readout": True}, {"readout": False}):
        assert config_json.as_json(config_json.from_json(bare | said))["readout"] is False
