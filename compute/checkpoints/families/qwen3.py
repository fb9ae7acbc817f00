"""Qwen3: Qwen2 with queries and keys normalized head by head, and biases only where asked."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from compute.checkpoints.families._attention import everywhere
from compute.checkpoints.families.llama import IGNORED, TABLE, llama_config
from compute.checkpoints.families.qwen2 import upper_window
from compute.checkpoints.family import Family
from compute.checkpoints.fields import Fields
from compute.checkpoints.stored import Stored, Table, as_is, by_table
from compute.config import ModelConfig

QK_NORM: Table = {
    "blocks.{l}.attn.q_norm.weight": ("layers.{l}.self_attn.q_norm.weight", as_is),
    "blocks.{l}.attn.k_norm.weight": ("layers.{l}.self_attn.k_norm.weight", as_is),
}


def _stored(config: ModelConfig) -> Mapping[str, Stored]:
    return by_table(config, {**TABLE, **QK_NORM})


def _config(fields: Fields, names: AbstractSet[str]) -> ModelConfig:
    config = llama_config(fields, everywhere(fields.flag("attention_bias", False)))
    normed = replace(config, attention=replace(config.attention, qk_norm="head"))
    return upper_window(fields, normed)


QWEN3 = Family(
    name="qwen3",
    model_types=("qwen3",),
    config=_config,
    stored=_stored,
    prefixes=("model.",),
    ignored=IGNORED,
)
