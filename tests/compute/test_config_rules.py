"""Each rule between fields has an example that breaks it, and all are reported at once."""

from dataclasses import replace

import pytest

from compute import config_rules
from compute.config import (
    AttentionConfig,
    FfnBias,
    FfnConfig,
    ModelConfig,
    NormConfig,
    PositionConfig,
    attention_config,
    ffn_config,
    position_config,
)
from compute.errors import ConfigError

GOOD = ModelConfig(
    d_model=12,
    n_layers=2,
    attention=attention_config(12, 3),
    ffn=ffn_config(12, "mlp"),
    norm=NormConfig(),
    position=PositionConfig(),
    vocab=None,
    tied=False,
    unembed_bias=False,
    final_norm=False,
)
NO_ATTENTION, NO_FFN = AttentionConfig(kind="none"), FfnConfig(kind="none")


def rope(rotary_dim: int) -> PositionConfig:
    return position_config("rope", 4, rotary_dim=rotary_dim)


BROKEN: dict[str, tuple[dict[str, object], str]] = {
    "nothing in the block": ({"attention": NO_ATTENTION, "ffn": NO_FFN}, "ffn.kind"),
    "a norm that is none, placed": (
        {"norm": NormConfig(kind="none", placement="post")},
        "norm.placement",
    ),
    "a gate bias without a gate": (
        {"ffn": ffn_config(12, "mlp", bias=FfnBias(gate=True))},
        "ffn.bias.gate",
    ),
    "heads that do not divide": ({"attention": attention_config(12, 5)}, "attention.n_heads"),
    "heads that cannot share": (
        {"attention": attention_config(12, 3, n_kv_heads=2)},
        "attention.n_kv_heads",
    ),
    "more keys than queries": (
        {"attention": attention_config(12, 3, n_kv_heads=6)},
        "attention.n_kv_heads",
    ),
    "rope without attention": (
        {"attention": NO_ATTENTION, "position": rope(4)},
        "position.kind",
    ),
    "alibi without attention": (
        {"attention": NO_ATTENTION, "position": position_config("alibi", 4)},
        "position.kind",
    ),
    "an odd rotary width": ({"position": rope(3)}, "position.rotary_dim"),
    "a rotary width beyond the head": ({"position": rope(6)}, "position.rotary_dim"),
    "a rotary width of nothing": ({"position": rope(0)}, "position.rotary_dim"),
    "learned positions without a table": (
        {"position": position_config("learned", 4)},
        "position.n_positions",
    ),
    "tied to nothing": ({"tied": True}, "tied"),
    "a readout bias without a readout": ({"unembed_bias": True}, "unembed_bias"),
    "a final norm of no kind": (
        {"final_norm": True, "norm": NormConfig(kind="none")},
        "final_norm",
    ),
}


def broken(config: ModelConfig) -> list[str]:
    """The places of the rules that a config breaks."""
    with pytest.raises(ConfigError) as refused:
        config_rules.check(config)
    assert all(fault.code == "config_rule" for fault in refused.value.faults)
    assert all(fault.detail.endswith(".") or fault.detail for fault in refused.value.faults)
    return [".".join(map(str, fault.place)) for fault in refused.value.faults]


def test_a_config_that_breaks_no_rule_is_given_back() -> None:
    assert config_rules.check(GOOD) is GOOD


@pytest.mark.parametrize("example", BROKEN)
def test_each_rule_is_broken_by_its_example_alone(example: str) -> None:
    given, place = BROKEN[example]
    assert broken(replace(GOOD, **given)) == [place]


def test_all_broken_rules_are_reported_at_once() -> None:
    config = replace(
        GOOD,
        attention=attention_config(12, 5, n_kv_heads=2),
        ffn=ffn_config(12, "mlp", bias=FfnBias(gate=True)),
        norm=NormConfig(kind="none", placement="post"),
        position=position_config("learned", 4),
        tied=True,
        unembed_bias=True,
        final_norm=True,
    )
    assert broken(config) == [
        "norm.placement",
        "ffn.bias.gate",
        "attention.n_heads",
        "attention.n_kv_heads",
        "position.n_positions",
        "tied",
        "unembed_bias",
        "final_norm",
    ]


def test_heads_that_do_not_divide_are_refused_with_both_numbers() -> None:
    with pytest.raises(ConfigError, match=r"d_model = 12 .* n_heads = 5"):
        config_rules.check(replace(GOOD, attention=attention_config(12, 5)))


def test_a_head_width_of_its_own_needs_no_division() -> None:
    config_rules.check(replace(GOOD, attention=attention_config(12, 5, d_head=4)))


@pytest.mark.parametrize("rotary_dim", [2, 4])
def test_an_even_rotary_width_within_the_head_is_fine(rotary_dim: int) -> None:
    config_rules.check(replace(GOOD, position=rope(rotary_dim)))
