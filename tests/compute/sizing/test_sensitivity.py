"""What one step of a field moves, against formulas written out and against known blocks."""

from typing import Any

import pytest

import sized
from compute import config_rules
from compute.config import ModelConfig
from compute.sizing import architecture, sensitivity, steps
from compute.sizing.formats import CacheFormat, Format
from compute.sizing.vocabulary import Conventions, Workload

HALF = CacheFormat(format=Format(name="float16"))


def found(config: ModelConfig) -> dict[str, sensitivity.Field]:
    tokens = architecture.patch_rows(config) or 16
    run = Workload(tokens=tokens, source=tokens if config.cross_attention else 0)
    fields, _ = sensitivity.of(config, run, HALF, Conventions())
    return {field.name: field for field in fields}


def gpt2(**changed: int) -> int:
    """Parameters of GPT-2 small, written out, with some of its sizes changed."""
    x = {"d": 768, "L": 12, "h": 12, "k": 64, "v": 64, "f": 3072, "V": 50257, "n": 1024, **changed}
    d, h, k, v, f = (x[letter] for letter in "dhkvf")
    attention = 2 * (d * h * k + h * k) + d * h * v + h * v + h * v * d + d
    block = attention + 2 * d * f + f + d + 4 * d
    return x["V"] * d + x["n"] * d + x["L"] * block + 2 * d


GPT2 = {
    "d_model": {"d": 769},
    "n_layers": {"L": 13},
    "attention.n_heads": {"h": 13},
    "attention.d_head": {"k": 65},
    "attention.d_value": {"v": 65},
    "ffn.d_ff": {"f": 3073},
    "vocab": {"V": 50258},
    "position.n_positions": {"n": 1025},
}


def test_fields_of_gpt2_move_what_its_formula_says() -> None:
    fields = found(sized.config_of("gpt2-small"))
    assert fields.keys() == GPT2.keys()
    for name, changed in GPT2.items():
        moved = fields[name].parameters
        assert (moved.before, moved.after) == (gpt2(), gpt2(**changed)), name
        grown = (gpt2(**changed) - gpt2()) / gpt2()
        percent = (fields[name].after - fields[name].value) / fields[name].value
        assert moved.elasticity == pytest.approx(grown / percent, rel=1e-12)


def _has_one_kind_of_block(truth: dict[str, Any]) -> bool:
    moe = truth["config"].get("moe") or {}
    plain = not moe.get("first_dense") and moe.get("every", 1) == 1
    is_one = truth["config"]["arch"] != "encoder_decoder"
    return plain and is_one and not truth["config"].get("shared_layers")


@pytest.mark.parametrize(
    "name", [name for name, truth in sized.truths().items() if _has_one_kind_of_block(truth)]
)
def test_one_more_block_adds_the_known_parameters_of_a_block(name: str) -> None:
    moved = found(sized.config_of(name))["n_layers"].parameters
    assert moved.before == sized.truths()[name]["params_total"]
    assert moved.difference == sized.truths()[name]["params_per_block"]


@pytest.mark.parametrize("name", sized.truths())
def test_every_step_is_allowed_and_what_moves_most_comes_first(name: str) -> None:
    config = sized.config_of(name)
    for step in steps.of(config):
        assert config_rules.check(step.config) is step.config
        assert step.after > step.value
    ranked = [abs(field.parameters.elasticity or 0.0) for field in found(config).values()]
    assert ranked == sorted(ranked, reverse=True)


@pytest.mark.parametrize("name", ["llama-3(.1)-8b", "qwen3-0.6b", "gemma-3-4b (text)"])
def test_cache_follows_blocks_and_kv_heads_and_not_width_or_heads(name: str) -> None:
    config = sized.config_of(name)
    moved = {name: field.kv_bytes_per_token for name, field in found(config).items()}
    per_block = 2 * 2 * config.attention.n_kv_heads * config.attention.d_head
    assert moved["n_layers"] is not None
    assert moved["n_layers"].before == sized.truths()[name]["kv_bytes_per_token_fp16"]
    assert moved["n_layers"].difference == per_block
    for field in ("d_model", "ffn.d_ff", "vocab", "attention.n_heads"):
        assert moved[field] is not None
        assert moved[field].difference == 0, field
    wider = found(config)["attention.n_kv_heads"]
    kept = wider.kv_bytes_per_token
    assert kept is not None
    assert kept.after * wider.value == kept.before * wider.after


def test_one_more_chosen_expert_moves_operations_and_no_parameters() -> None:
    config = sized.config_of("mixtral-8x7b")
    field = found(config)["ffn.top_k"]
    assert field.parameters.difference == 0
    assert field.flops.difference == 2 * 16 * 32 * 3 * 4096 * 14336


def test_a_model_that_caches_nothing_moves_no_cache() -> None:
    fields = found(sized.config_of("bert-base-uncased"))
    assert {field.kv_bytes_per_token for field in fields.values()} == {None}


def test_what_cannot_grow_says_why() -> None:
    _, fixed = sensitivity.of(
        sized.config_of("gpt2-small"), Workload(tokens=1), HALF, Conventions()
    )
    assert fixed == {"attention.n_kv_heads": "Every head has keys and values of its own already."}
