"""What a config says for sizing alone: its rules and defaults; a run refuses it by name."""

from typing import Any

import pytest
from pydantic import ValidationError

from compute import config_json, config_rules
from compute.config import ModelConfig
from compute.errors import ConfigError
from schemas import overrides
from schemas.config import ConfigAsked

MLA = {"kv_lora_rank": 6, "d_nope": 4, "d_rope": 2}
MOE = {"kind": "moe", "n_experts": 4, "top_k": 2}


def asked(**config: Any) -> ConfigAsked:  # noqa: ANN401 - plain JSON
    base = {"d_model": 8, "n_layers": 3, "attention": {"n_heads": 2}, "vocab": 16}
    return ConfigAsked.model_validate(base | config)


def heads(**attention: Any) -> dict[str, Any]:  # noqa: ANN401 - plain JSON
    return {"n_heads": 2, "mla": MLA, **attention}


SIZED = {
    "attention.mla": {"attention": heads()},
    "ffn.first_dense": {"ffn": MOE | {"first_dense": 1}},
    "ffn.every": {"ffn": MOE | {"every": 2}},
    "norm.gain": {"norm": {"gain": False}},
    "vocab_padded_to": {"vocab_padded_to": 32},
    "d_embed": {"d_embed": 4},
    "distinct_blocks": {"distinct_blocks": 1},
    "patches": {"vocab": None, "patches": {"image_size": 8, "patch_size": 4}},
}
BESIDE = {
    "pooler": {"pooler": True},
    "classes": {"classes": 3},
    "extras": {"extras": [{"name": "tower", "parameters": 7}]},
}


def resolved(said: dict[str, Any]) -> ModelConfig:
    return asked(**said).to_compute()


@pytest.mark.parametrize(("name", "said"), SIZED.items(), ids=SIZED)
def test_run_refuses_by_name_what_is_only_sized(name: str, said: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as refused:
        config_rules.check_run(resolved(said))
    faults = [(".".join(map(str, x.place)), x.code) for x in refused.value.faults]
    assert faults == [(name, "sized_only")]
    assert "POST /v1/sizing" in refused.value.faults[0].detail


@pytest.mark.parametrize("said", BESIDE.values(), ids=BESIDE)
def test_run_takes_what_stands_beside_it(said: dict[str, Any]) -> None:
    config = resolved(said)
    assert config_rules.check_run(config) is config


def test_run_refuses_what_an_encoder_has_too() -> None:
    encoder = {"attention": {"n_heads": 2}, "norm": {"gain": False}}
    with pytest.raises(ConfigError) as refused:
        config_rules.check_run(resolved({"encoder": encoder}))
    assert [fault.place for fault in refused.value.faults] == [("encoder", "norm", "gain")]


@pytest.mark.parametrize("said", [*SIZED.values(), *BESIDE.values()], ids=[*SIZED, *BESIDE])
def test_config_is_written_and_read_again(said: dict[str, Any]) -> None:
    config = resolved(said)
    written = config_json.as_json(config)
    again = (
        config_json.from_json(written),
        ConfigAsked.model_validate(written).to_compute(),
        overrides.written(config).to_compute(),
    )
    assert [config_json.as_json(made) for made in again] == [written] * 3


def test_config_without_them_does_not_say_them() -> None:
    written = config_json.as_json(resolved({"ffn": MOE}))
    named = {".".join(name.split(".")[-1:]) for name in (*SIZED, *BESIDE)} | {"d_dense"}
    parts = (written, written["attention"], written["ffn"], written["norm"])
    assert not [name for part in parts for name in named & set(part)]


def test_latent_attention_decides_the_widths_of_a_head() -> None:
    attention = resolved({"attention": heads()}).attention
    assert (attention.d_head, attention.d_value, attention.n_kv_heads) == (6, 4, 2)
    assert resolved({"attention": heads(d_value=5)}).attention.d_value == 5
    turning = resolved({"attention": heads(), "position": {"kind": "rope"}}).position
    assert turning.rotary_dim == 2


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("attention.d_head", {"attention": heads(d_head=5)}),
        ("attention.n_kv_heads", {"attention": heads(n_kv_heads=1)}),
        ("attention.qk_norm", {"attention": heads(qk_norm="head")}),
        ("attention.sinks", {"attention": heads(sinks=True)}),
        ("attention.bias.q", {"attention": heads(bias={"q": True})}),
        ("cross_attention", {"attention": heads(), "cross_attention": True}),
        ("ffn.first_dense", {"ffn": MOE | {"first_dense": 4}}),
        ("ffn.d_dense", {"ffn": MOE | {"d_dense": 4}}),
        ("ffn.first_dense", {"ffn": {"kind": "mlp", "first_dense": 1}}),
        ("distinct_blocks", {"distinct_blocks": 4}),
        ("distinct_blocks", {"distinct_blocks": 1, "ffn": MOE | {"every": 2}}),
        ("vocab_padded_to", {"vocab_padded_to": 15}),
        ("vocab_padded_to", {"vocab_padded_to": 15, "vocab": None}),
        ("d_embed", {"d_embed": 4, "vocab": None}),
        ("d_embed", {"d_embed": 8}),
        ("patches.image_size", {"vocab": None, "patches": {"image_size": 9, "patch_size": 4}}),
        ("extras.1.name", {"extras": [{"name": "a", "parameters": 1}] * 2}),
        ("patches", {"patches": {"image_size": 8, "patch_size": 4}}),
    ],
)
def test_rule_between_fields_is_told_at_the_field(place: str, said: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as refused:
        resolved(said)
    assert [".".join(map(str, fault.place)) for fault in refused.value.faults] == [place]


@pytest.mark.parametrize(
    "said",
    [
        {"attention": {"n_heads": 2, "mla": {**MLA, "kv_lora_rank": 0}}},
        {"ffn": MOE | {"first_dense": -1}},
        {"ffn": MOE | {"every": 0}},
        {"vocab_padded_to": 10**30},
        {"distinct_blocks": "1"},
        {"classes": -1},
        {"extras": [{"name": "Tower", "parameters": 1}]},
        {"extras": [{"name": "tower", "parameters": 1 << 51}]},
        {"patches": {"image_size": 0, "patch_size": 4}},
        {"pooler": 1},
    ],
)
def test_value_out_of_bounds_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        asked(**said)
