"""Each rule between fields has an example that breaks it, and all are reported at once."""

from dataclasses import replace

import pytest

from compute import config_rules
from compute.config import (
    AttentionConfig,
    FfnBias,
    FfnConfig,
    LayerConfig,
    ModelConfig,
    NormConfig,
    PositionConfig,
    RopeScaling,
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


def moe(**given: object) -> FfnConfig:
    return ffn_config(12, "moe", **({"n_experts": 4, "top_k": 2} | given))


def scaled(kind: str, rotary_dim: int = 4, **given: object) -> PositionConfig:
    scaling = RopeScaling(kind=kind, **({"factor": 2.0, "original_positions": 8} | given))
    return position_config("rope", 4, rotary_dim=rotary_dim, scaling=scaling)


def t5(**given: object) -> PositionConfig:
    return position_config("t5_bias", 4, **given)


def layer(**given: object) -> LayerConfig:
    off = {"window": None, "scale": 0.5, "theta": None, "scaling": RopeScaling()}
    return LayerConfig(**(off | given))


SANDWICH = NormConfig(placement="sandwich")
NO_NORM = NormConfig(kind="none")
CROSSING = {"cross_attention": True}
PARALLEL = {"topology": "parallel"}

BROKEN: dict[str, tuple[dict[str, object], str]] = {
    "no rows": ({"d_model": 0}, "d_model"),
    "no blocks": ({"n_layers": 0}, "n_layers"),
    "no words": ({"vocab": 0}, "vocab"),
    "no value width": ({"attention": attention_config(12, 3, d_value=0)}, "attention.d_value"),
    "a window of nothing": ({"attention": attention_config(12, 3, window=0)}, "attention.window"),
    "an ffn of nothing": ({"ffn": ffn_config(12, "mlp", d_ff=0)}, "ffn.d_ff"),
    "a parallel block without an ffn": (PARALLEL | {"ffn": NO_FFN}, "topology"),
    "a parallel block with norms after it": (
        PARALLEL | {"norm": NormConfig(placement="post")},
        "topology",
    ),
    "a parallel block with norms around it": (PARALLEL | {"norm": SANDWICH}, "topology"),
    "a memory for a block without attention": (
        CROSSING | {"attention": NO_ATTENTION},
        "cross_attention",
    ),
    "a memory for a block without an ffn": (CROSSING | {"ffn": NO_FFN}, "cross_attention"),
    "a memory for a parallel block": (CROSSING | PARALLEL, "cross_attention"),
    "a memory between norms": (CROSSING | {"norm": SANDWICH}, "cross_attention"),
    "a memory before norms": (
        CROSSING | {"norm": NormConfig(placement="output")},
        "cross_attention",
    ),
    "a norm shared by sublayers one after the other": (
        {"norm": NormConfig(shared=True)},
        "norm.shared",
    ),
    "a norm of the embedding of no kind": ({"norm": NO_NORM, "embed_norm": True}, "embed_norm"),
    "a head's norm of no kind": (
        {"norm": NO_NORM, "attention": attention_config(12, 3, qk_norm="head")},
        "attention.qk_norm",
    ),
    "a masked-token head's norm of no kind": (
        {"norm": NO_NORM, "vocab": 7, "mlm_head": True},
        "mlm_head",
    ),
    "experts that are none": ({"ffn": moe(n_experts=0)}, "ffn.n_experts"),
    "experts none of which is chosen": ({"ffn": moe(top_k=0)}, "ffn.top_k"),
    "more experts chosen than there are": ({"ffn": moe(top_k=5)}, "ffn.top_k"),
    "more experts than are worked through": ({"ffn": moe(n_experts=4097)}, "ffn.n_experts"),
    "a weight of no shared expert": ({"ffn": moe(shared_gate=True)}, "ffn.shared_gate"),
    "a gate bias of experts without gates": (
        {"ffn": moe(expert="mlp", bias=FfnBias(gate=True))},
        "ffn.bias.gate",
    ),
    "t5 without attention": ({"attention": NO_ATTENTION, "position": t5()}, "position.kind"),
    "odd buckets of two directions": (
        {"position": t5(n_buckets=9, bidirectional=True)},
        "position.n_buckets",
    ),
    "one bucket": ({"position": t5(n_buckets=1)}, "position.n_buckets"),
    "one bucket for each direction": (
        {"position": t5(n_buckets=2, bidirectional=True)},
        "position.n_buckets",
    ),
    "a largest distance within the near ones": (
        {"position": t5(n_buckets=32, max_distance=16)},
        "position.max_distance",
    ),
    **{
        f"{kind} scaling of nothing": (
            {"position": scaled(kind, original_positions=0)},
            "position.scaling.original_positions",
        )
        for kind in ("dynamic", "yarn", "llama3")
    },
    "dynamic scaling of one pair": ({"position": scaled("dynamic", 2)}, "position.scaling.kind"),
    "frequencies that are low above the high ones": (
        {"position": scaled("llama3", low_freq_factor=4.0)},
        "position.scaling.high_freq_factor",
    ),
    "slow turns that are faster than the fast ones": (
        {"position": scaled("yarn", beta_slow=32.0)},
        "position.scaling.beta_fast",
    ),
    "yarn where every pair turns alike": (
        {"position": replace(scaled("yarn"), theta=1.0)},
        "position.theta",
    ),
    "a block's yarn where every pair turns alike": (
        {
            "position": rope(4),
            "layers": (layer(), layer(theta=1.0, scaling=scaled("yarn").scaling)),
        },
        "layers.1.theta",
    ),
    "too few layers": ({"layers": (layer(),)}, "layers"),
    "too many layers": ({"layers": (layer(),) * 3}, "layers"),
    "layers without attention": (
        {"layers": (layer(), layer()), "attention": NO_ATTENTION},
        "layers",
    ),
    "a block's window of nothing": ({"layers": (layer(), layer(window=0))}, "layers.1.window"),
    "a block that turns where nothing does": (
        {"layers": (layer(theta=1e4), layer())},
        "layers.0.theta",
    ),
    "a block's scaling of nothing": (
        {
            "position": rope(4),
            "layers": (layer(), layer(theta=1e4, scaling=RopeScaling(kind="yarn"))),
        },
        "layers.1.scaling.original_positions",
    ),
    "an encoder that nobody reads": ({"encoder": GOOD}, "encoder"),
    "an encoder of another width": (
        CROSSING | {"encoder": replace(GOOD, d_model=13, attention=attention_config(13, 13))},
        "encoder.d_model",
    ),
    "an encoder with a vocabulary": (
        CROSSING | {"encoder": replace(GOOD, vocab=7)},
        "encoder",
    ),
    "an encoder with an encoder": (
        CROSSING | {"encoder": replace(GOOD, encoder=GOOD)},
        "encoder",
    ),
    "an encoder that crosses": (CROSSING | {"encoder": replace(GOOD, **CROSSING)}, "encoder"),
    "an encoder that breaks a rule": (
        CROSSING | {"encoder": replace(GOOD, position=rope(3))},
        "encoder.position.rotary_dim",
    ),
    "an encoder with a masked-token head": (
        CROSSING | {"encoder": replace(GOOD, mlm_head=True)},
        "encoder.mlm_head",
    ),
    "a masked-token head without a vocabulary": ({"mlm_head": True}, "mlm_head"),
    "a bound of no logits": ({"logit_softcap": 30.0}, "logit_softcap"),
    "a multiplier of no logits": ({"logit_multiplier": 0.5}, "logit_multiplier"),
    **{
        f"{field} of a readout that is left out": (
            {"vocab": 7, "readout": False, field: value},
            field,
        )
        for field, value in (
            *(("tied", True), ("unembed_bias", True), ("mlm_head", True)),
            *(("logit_softcap", 30.0), ("logit_multiplier", 0.5)),
        )
    },
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


FINE: dict[str, dict[str, object]] = {
    "a readout left out": {"vocab": 7, "readout": False},
    "a readout left out without a vocabulary": {"readout": False},
    "a parallel block": PARALLEL,
    "a parallel block of one norm": PARALLEL | {"norm": NormConfig(shared=True)},
    "a parallel block without norms": PARALLEL | {"norm": NO_NORM},
    "a sandwich": {"norm": SANDWICH, "ffn": NO_FFN},
    "cross-attention without norms": CROSSING | {"norm": NO_NORM},
    "cross-attention with norms after": CROSSING | {"norm": NormConfig(placement="post")},
    "an encoder": CROSSING | {"encoder": GOOD},
    "an encoder of other parts": CROSSING | {"encoder": replace(GOOD, **PARALLEL, ffn=moe())},
    "experts": {"ffn": moe(bias=FfnBias(in_=True, gate=True, out=True))},
    "every expert chosen": {"ffn": moe(top_k=4, d_shared=5, shared_gate=True)},
    "t5": {"position": t5(n_buckets=4, max_distance=2, bidirectional=True)},
    "a masked-token head": {"vocab": 7, "mlm_head": True, "tied": True},
    "bounded logits": {"vocab": 7, "logit_softcap": 30.0, "logit_multiplier": 0.5},
    "blocks of their own": {
        "position": rope(4),
        "layers": (layer(window=1), layer(theta=1e4, scaling=RopeScaling(kind="linear"))),
    },
    **{f"{kind} scaling": {"position": scaled(kind)} for kind in ("dynamic", "yarn", "llama3")},
    "linear scaling": {"position": scaled("linear", 2, original_positions=0)},
    "llama3 where every pair turns alike": {"position": replace(scaled("llama3"), theta=1.0)},
}


@pytest.mark.parametrize("example", FINE)
def test_what_only_looks_like_a_broken_rule_is_fine(example: str) -> None:
    config_rules.check(replace(GOOD, **FINE[example]))


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
        "ffn.bias.gate",
        "norm.placement",
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
