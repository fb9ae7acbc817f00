"""Gemma 3's text model: Gemma 2 with queries and keys normalized instead of capped scores, and a
RoPE of their own for the blocks that slide."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from compute.checkpoints.families._attention import FULL, SLIDING, slides, with_blocks
from compute.checkpoints.families.gemma2 import SANDWICH, Defaults, gemma_config
from compute.checkpoints.families.llama import IGNORED
from compute.checkpoints.families.qwen3 import QK_NORM
from compute.checkpoints.family import Family
from compute.checkpoints.fields import Fields
from compute.checkpoints.rope import rope
from compute.checkpoints.stored import Stored, by_table
from compute.config import ModelConfig, layer_config


def _stored(config: ModelConfig) -> Mapping[str, Stored]:
    return by_table(config, {**SANDWICH, **QK_NORM})


def _config(fields: Fields, names: AbstractSet[str]) -> ModelConfig:
    text = fields.nested("text_config") if fields.has("text_config") else fields
    turned = rope(text, layer_type=FULL, theta=("rope_theta", 1e6))
    local = rope(text, layer_type=SLIDING, theta=("rope_local_base_freq", 10000.0), scaled=False)
    config = gemma_config(text, turned, "head", Defaults(vocab=262_208))
    every = text.size_or("sliding_window_pattern", 6)
    others = layer_config(config)
    own = replace(
        others,
        window=text.size_or("sliding_window", 4096),
        theta=local.theta,
        scaling=local.scaling,
    )
    sliding = slides(text, config.n_layers, lambda layer: (layer + 1) % every > 0)
    return with_blocks(config, sliding, own, others)


GEMMA3 = Family(
    name="gemma3",
    model_types=("gemma3_text", "gemma3"),
    config=_config,
    stored=_stored,
    prefixes=("language_model.model.", "model.language_model.", "language_model.", "model."),
    ignored=re.compile(rf"(vision_tower|multi_modal_projector)\..*|{IGNORED.pattern}"),
)
