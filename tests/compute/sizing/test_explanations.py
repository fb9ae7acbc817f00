"""Each way to count otherwise is the difference of two counts, and its formulas say so."""

from dataclasses import replace
from typing import Any

import pytest

import runs
import sized
from compute import config_json
from compute.config import ModelConfig
from compute.sizing import parameters
from compute.sizing.reconciling import explanations, other_numbers
from compute.sizing.reconciling.differences import letters_of
from evaluating import evaluated
from schemas.config import ConfigAsked
from schemas.presets import PRESETS


def changed(name: str, **fields: Any) -> int:  # noqa: ANN401 - plain JSON
    """The count of a truth with fields of its request changed, one level deep."""
    asked = sized.asked(sized.truths()[name]["config"])
    for key, value in fields.items():
        asked[key] = {**asked[key], **value} if isinstance(value, dict) else value
    return parameters.count(ConfigAsked.model_validate(asked).to_compute())


OTHER_SHAPES = [
    ("qwen3-0.6b", "mha_assumed", {"attention": {"n_kv_heads": 16}}),
    ("qwen3-0.6b", "d_head_assumed", {"attention": {"d_head": 64}}),
    ("qwen3-0.6b", "mha_and_d_head_assumed", {"attention": {"d_head": 64, "n_kv_heads": 16}}),
    ("gpt-oss-20b", "mha_assumed", {"attention": {"n_kv_heads": 64}}),
    ("llama-1/2-7b", "ffn_4d_assumed", {"ffn": {"d_ff": 16384}}),
    ("llama-1/2-7b", "two_matrices_assumed", {"ffn": {"kind": "mlp"}}),
    ("llama-1/2-7b", "ffn_4d_of_two_assumed", {"ffn": {"kind": "mlp", "d_ff": 16384}}),
    ("mixtral-8x7b", "two_matrices_assumed", {"ffn": {"expert": "mlp"}}),
    (
        *("gpt2-small", "gate_assumed"),
        {"ffn": {"kind": "gated", "bias": {"in": True, "gate": False, "out": True}}},
    ),
    ("gpt2-small", "vocab_to_64", {"vocab": 50304}),
    ("pythia-1.4b", "vocab_to_1024", {"vocab": 51200}),
    ("bert-base-uncased", "without_token_types", {"token_types": 0}),
    ("vit-b/16 @224 1000cls", "without_classes", {"classes": 0}),
]


@pytest.mark.parametrize(("name", "reason", "fields"), OTHER_SHAPES)
def test_an_assumed_shape_differs_as_the_counts_of_both_do(
    name: str, reason: str, fields: dict[str, Any]
) -> None:
    config = sized.config_of(name)
    (found,) = [x for x in explanations.differences(config) if x.id == reason]
    assert found.value == changed(name, **fields) - parameters.count(config)


@pytest.mark.parametrize(
    ("name", "reason", "fields"),
    [
        ("pythia-12b", "other_vocab", {"vocab": 50304}),
        ("gpt3-xl", "other_heads", {"attention": {"n_heads": 24, "n_kv_heads": 24}}),
        ("gemma-2b", "other_heads", {"attention": {"n_heads": 12}}),
        ("gemma-2b", "other_d_head", {"attention": {"d_head": 128}}),
        ("llama-1/2-7b", "other_blocks", {"n_layers": 30}),
        (
            "mpt-foundry L=32 d=4096 ctx=2048",
            "other_rows",
            {"position": {"n_positions": 16384}},
        ),
    ],
)
def test_another_number_of_a_config_is_solved_for(
    name: str, reason: str, fields: dict[str, Any]
) -> None:
    published = changed(name, **fields)
    config = sized.config_of(name)
    (found,) = [x for x in other_numbers.solved(config, published, published) if x.id == reason]
    assert found.value == published - parameters.count(config)


CONFIGS = [
    *(sized.config_of(name) for name in sized.truths()),
    *(config_json.from_json(runs.case_of(seed).config) for seed in range(150)),
]


def known(config: ModelConfig) -> dict[str, int]:
    """The letters that formulas may use, from the config's own fields."""
    ffn, mla, attention = config.ffn, config.attention.mla, config.attention
    return {
        "d": config.d_model,
        "h": attention.n_heads,
        "g": attention.n_kv_heads,
        "k": attention.d_head,
        "v": attention.d_value,
        "f": ffn.d_ff,
        "f_dense": ffn.d_dense,
        "rotary_dim": config.position.rotary_dim,
        "n_positions": config.position.n_positions,
        "r_kv": mla.kv_lora_rank if mla else 0,
    }


@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
def test_formulas_of_every_difference_make_its_value(config: ModelConfig) -> None:
    ours = parameters.count(config)
    listed = list(explanations.differences(config))
    listed += other_numbers.solved(config, ours * 9 // 10, ours * 11 // 10)
    fields = known(config)
    for found in listed:
        for change in found.changes:
            letters = letters_of(change.quantity)
            assert evaluated(change.substituted) == change.value
            assert evaluated(change.formula, letters) == change.value
            if config.encoder is None:
                told = {x: value for x, value in letters.items() if x in fields}
                assert told == {x: fields[x] for x in told}
        assert sum(x.value for x in found.changes) == found.value
        assert ours + found.value >= 0, found.id


def test_every_difference_that_can_be_has_its_place_in_the_order() -> None:
    listed = {x.id for config in CONFIGS for x in explanations.differences(config)}
    presets = (preset.config.to_compute() for preset in PRESETS.values())
    listed |= {x.id for config in presets for x in explanations.differences(config)}
    base = sized.config_of("gpt2-small")
    listed |= {x.id for x in explanations.differences(replace(base, vocab_padded_to=50304))}
    solved = {x for x in explanations.ORDER if x.startswith("other_")}
    assert listed <= set(explanations.ORDER)
    assert set(explanations.ORDER) - listed - solved <= {"without_extras"}
    assert {x.group for config in CONFIGS for x in explanations.differences(config)} <= set(
        explanations.GROUPS
    )
    assert len(explanations.ORDER) == len(set(explanations.ORDER))
