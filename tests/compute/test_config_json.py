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


def misfit(raw: Any) -> Place:  # noqa: ANN401 - what no config is
    with pytest.raises(ConfigError) as refused:
        config_json.from_json(raw)
    (fault,) = refused.value.faults
    assert fault.detail.startswith(".".join(map(str, fault.place)) or "the config")
    return fault.place


def places(raw: dict[str, Any], above: Place = ()) -> Iterator[Place]:
    """Where each field of a config is, parts too."""
    for key, value in raw.items():
        yield (*above, key)
        if isinstance(value, dict):
            yield from places(value, (*above, key))


def part_of(raw: dict[str, Any], place: Place) -> dict[str, Any]:
    for key in place[:-1]:
        raw = raw[str(key)]
    return raw


def test_500_configs_come_back_as_they_were() -> None:
    for seed in range(500):
        raw = runs.case_of(seed).config
        config = config_json.from_json(raw)
        assert config_json.as_json(config) == raw
        through_text = json.loads(json.dumps(config_json.as_json(config)))
        assert config_json.from_json(through_text) == config


@pytest.mark.parametrize("place", list(places(ROTARY)), ids=".".join)
def test_a_missing_field_is_refused_by_its_place(place: Place) -> None:
    raw = deepcopy(ROTARY)
    del part_of(raw, place)[str(place[-1])]
    known = len(place) - (place[-1] == "kind")  # without its kind a part lacks other fields too
    assert misfit(raw)[:known] == place[:known]


@pytest.mark.parametrize("place", list(places(ROTARY)), ids=".".join)
@pytest.mark.parametrize("wrong", ["7", 1.5, True, [], {}, None, -0.0], ids=repr)
def test_a_wrong_type_is_refused_by_its_place(place: Place, wrong: object) -> None:
    fields: dict[object, tuple[type, ...]] = {
        "scale": (float,),
        "theta": (float,),
        "eps": (float,),
        "gain_offset": (float,),
        "window": (type(None),),
        "vocab": (type(None),),
    }
    flags = ("q", "k", "v", "o", "in", "gate", "out", "tied", "unembed_bias", "final_norm")
    allowed = (bool,) if place[-1] in flags else fields.get(place[-1], ())
    if type(wrong) in allowed:
        return
    raw = deepcopy(ROTARY)
    part_of(raw, place)[str(place[-1])] = wrong
    assert misfit(raw)[: len(place) - 1] == place[:-1]
    if wrong != {} and place[-1] != "kind":
        assert misfit(raw) == place


@pytest.mark.parametrize(
    "place", [("extra",), *((part, "extra") for part in ("attention", "ffn", "norm", "position"))]
)
def test_an_unknown_field_is_refused_by_its_place(place: Place) -> None:
    raw = deepcopy(ROTARY)
    part_of(raw, place)["extra"] = 1
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


def test_no_key_heads_at_all_are_refused_and_not_divided_by() -> None:
    raw = deepcopy(ROTARY)
    raw["attention"]["n_kv_heads"] = 0
    with pytest.raises(ConfigError):
        config_json.from_json(raw)
