"""Presets: each is what was published, in shape and in count, to the unit."""

from dataclasses import replace
from typing import Any

import pytest

import sized
from compute import config_json, tensors
from compute.config import ModelConfig
from compute.sizing import parameters
from parity.test_classic_configs import config_of
from schemas.presets import PRESETS

OURS = {
    "gpt2-tiny": 29_568,
    "llama-tiny": 26_784,
    "bert-base": 109_514_298,  # of BertForMaskedLM
    "bert-tiny": 4_416_698,  # likewise: 4,385,920 of BertModel, its pooler less, its head more
}
"""Presets without a truth of their own -> parameters."""
TRUTHS = {
    "gpt2": "gpt2-small",
    "nanogpt": "nanoGPT gpt2 bias=False",
    "openai-gpt": "openai-gpt (GPT-1)",
    "gpt3-13b": "gpt3-13b (d=5120)",
    "starcoder-15.5b": "starcoder-15.5b (MQA)",
    "stories15m": "llama2.c stories15M",
    "stories110m": "llama2.c stories110M",
    "llama-2-7b": "llama-1/2-7b",
    "llama-2-13b": "llama-1/2-13b",
    "llama-3-8b": "llama-3(.1)-8b",
    "llama-3.1-8b": "llama-3(.1)-8b",
    "llama-3-70b": "llama-3(.1)-70b",
    "llama-3.1-70b": "llama-3(.1)-70b",
    "gemma-3-4b": "gemma-3-4b (text)",
    "gemma-3-27b": "gemma-3-27b (text)",
    "mixtral-8x22b": "mixtral-8x22b (V=32768)",
    "deepseek-v3": "deepseek-v3 (main model, no MTP)",
    "falcon-7b": "falcon-7b (tied)",
    "bert-tiny-uncased": "bert-tiny (2/128)",
    "bert-multilingual-heads": "bert-base-multilingual-cased + MLM + NSP heads",
    "xlm-roberta-base": "xlm-roberta-base (with pooler)",
    "minilm-l6": "all-MiniLM-L6-v2",
    "bge-small-en-v1.5": "bge-small-en-v1.5 / MiniLM-L12",
    "albert-base-v2": "albert-base-v2 (1 shared layer x12)",
    "vit-b-16": "vit-b/16 @224 1000cls",
    "vit-b-32": "vit-b/32 @224 1000cls",
    "vit-h-14": "vit-h/14 @224 1000cls",
    "vit-b-16-backbone": "vit-b/16 backbone (no head)",
    "t5-v1.1-base": "t5-v1.1-base (untied)",
    "t5-v1.1-xxl": "t5-v1.1-xxl (untied)",
}
"""Preset -> the truth it stands for, where their names differ."""
NAMED = [name for name in PRESETS if name not in OURS]


def truth_of(name: str) -> dict[str, Any]:
    """The truth of a preset."""
    return sized.truths()[TRUTHS.get(name, name)]


@pytest.mark.parametrize("name", NAMED)
def test_preset_holds_what_its_truth_says(name: str) -> None:
    truth, config = truth_of(name), PRESETS[name].config.to_compute()
    assert parameters.count(config) == truth["params_total"]
    assert PRESETS[name].published == truth.get("published")


@pytest.mark.parametrize("name", OURS)
def test_preset_without_a_truth_has_the_parameters_of_its_tensors(name: str) -> None:
    config = PRESETS[name].config.to_compute()
    assert tensors.parameter_counts(config)["total"] == parameters.count(config) == OURS[name]
    assert PRESETS[name].published in (None, OURS[name])


SHAPE = {
    "": ("d_model", "n_layers", "vocab", "tied", "topology", "token_types", "embed_norm"),
    "attention": ("n_heads", "n_kv_heads", "d_head", "d_value", "mask", "qk_norm", "sinks", "bias"),
    "ffn": ("kind", "d_ff", "bias", "expert", "n_experts", "top_k", "d_shared", "first_dense"),
    "norm": ("kind", "bias", "shared", "gain"),
    "position": ("kind", "n_positions"),
}
"""Part -> fields that a truth says too."""


def shape(config: ModelConfig) -> dict[str, Any]:
    """What a truth says of a config, its encoder's too."""
    said = {
        f"{part}.{field}": getattr(getattr(config, part) if part else config, field)
        for part, fields in SHAPE.items()
        for field in fields
    }
    inner = None if config.encoder is None else shape(config.encoder)
    return {**said, "mla": config.attention.mla, "final_norm": config.final_norm, "encoder": inner}


@pytest.mark.parametrize("name", NAMED)
def test_preset_has_the_shape_of_its_truth(name: str) -> None:
    theirs = shape(sized.config_of(TRUTHS.get(name, name)))
    assert shape(PRESETS[name].config.to_compute()) == theirs


FILES = {
    "bert-base": "bert-base-uncased",
    "gemma-2-2b": "gemma-2-2b",
    "gemma-3-1b": "gemma-3-1b-it",
    "gpt2": "gpt2",
    "llama-2-7b": "llama-2-7b",
    "llama-3.1-8b": "llama-3.1-8b",
    "mistral-7b-v0.1": "mistral-7b-v0.1",
    "mixtral-8x7b": "mixtral-8x7b-v0.1",
    "olmo-2-7b": "olmo-2-1124-7b",
    "phi-2": "phi-2",
    "pythia-70m": "pythia-70m",
    "qwen2.5-0.5b": "qwen2-0.5b",
    "qwen3-0.6b": "qwen3-0.6b",
    "smollm2-135m": "smollm2-135m",
    "t5-small": "t5-small",
    "tinyllama-1.1b": "tinyllama-1.1b",
}
"""Preset -> the published config.json that is kept of it."""


@pytest.mark.parametrize("name", FILES)
def test_preset_runs_as_its_published_config_json_says(name: str) -> None:
    """Activations, eps, theta, windows, caps, scales: everything that decides numbers."""
    ours = PRESETS[name].config.to_compute()
    assert config_json.as_json(ours) == config_json.as_json(config_of(FILES[name]))


def test_opt_is_its_published_config_json_with_the_two_rows_that_no_position_has() -> None:
    published = config_of("opt-125m")
    position = replace(published.position, n_positions=published.position.n_positions + 2)
    ours = PRESETS["opt-125m"].config.to_compute()
    assert ours == replace(published, position=position)


def test_minilm_is_its_published_config_json_with_its_pooler() -> None:
    ours = PRESETS["minilm-l6"].config.to_compute()
    assert ours == replace(config_of("all-minilm-l6-v2"), pooler=True)


def test_every_published_architecture_is_a_preset_but_llm_foundrys() -> None:
    named = {TRUTHS.get(name, name) for name in NAMED}
    assert {name for name in sized.truths() if not name.startswith("mpt-foundry")} == named
    assert len(named) >= 60


def test_a_meaning_begins_with_a_line_for_the_table() -> None:
    """`glassblock presets` prints the first sentence."""
    first = {name: preset.meaning.partition(". ")[0] for name, preset in PRESETS.items()}
    assert {name: words for name, words in first.items() if len(words) > 60} == {}
    assert all(preset.meaning.endswith(".") and preset.source for preset in PRESETS.values())
