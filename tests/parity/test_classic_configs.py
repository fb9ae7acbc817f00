"""config.json files as published checkpoints have them: read, with as many parameters as upstream.

The counts are of upstream's models made from the same files, each parameter once. They hold rows of
positions before the first, and a pooler, which are not ours.
"""

import json
from collections.abc import Mapping

import pytest

from compute.checkpoints import resolving
from compute.checkpoints.fields import Fields
from compute.checkpoints.registry import family_for
from compute.config import ModelConfig
from compute.tensors import parameter_counts
from parity.references import CONFIGS, HERE

HEADS = {
    "bert": "cls.predictions.transform.dense.weight",
    "roberta": "lm_head.dense.weight",
    "distilbert": "vocab_transform.weight",
}
COUNTS: Mapping[str, int] = {
    "all-minilm-l6-v2": 22_713_216 - (384 + 1) * 384,
    "bert-base-uncased": 109_514_298,
    "distilbert-base-uncased": 66_985_530,
    "flan-t5-small": 60_511_616 + 32_128 * 512,  # upstream shares a head that the file has apart
    "gemma-2-2b": 2_614_341_888,
    "gemma-3-1b-it": 999_885_952,
    "gpt2": 124_439_808,
    "llama-2-7b": 6_738_415_616,
    "llama-3.1-8b": 8_030_261_248,
    "mistral-7b-v0.1": 7_241_732_096,
    "mixtral-8x7b-v0.1": 46_702_792_704,
    "olmo-2-1124-7b": 7_298_617_344,
    "opt-125m": 125_239_296 - 2 * 768,
    "phi-2": 2_779_683_840,
    "pythia-70m": 70_426_624,
    "qwen2-0.5b": 494_032_768,
    "qwen3-0.6b": 596_049_920,
    "roberta-base": 124_697_433 - 2 * 768,
    "smollm2-135m": 134_515_008,
    "t5-small": 60_506_624,
    "tinyllama-1.1b": 1_100_048_384,
}


def test_every_config_has_a_count() -> None:
    assert {path.stem for path in (HERE / CONFIGS).glob("*.json")} == set(COUNTS)


@pytest.mark.parametrize("name", COUNTS)
def test_a_published_config_has_as_many_parameters_as_upstream(name: str) -> None:
    assert parameter_counts(config_of(name))["total"] == COUNTS[name]


def config_of(name: str) -> ModelConfig:
    """The config, as beside a file of many tensors with the head that its class has."""
    raw = json.loads((HERE / CONFIGS / f"{name}.json").read_text("utf-8"))
    family = family_for(raw["model_type"])
    names = {f"tensor.{i}" for i in range(1000)}
    if raw["architectures"][0].endswith("MaskedLM"):
        names.add(HEADS[family.name])
    if not raw.get("tie_word_embeddings", True):
        names.add("lm_head.weight")
    return resolving.config_of(family, Fields(raw), names)
