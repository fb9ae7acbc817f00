"""Qwen2: Llama's block with biases on Q, K and V, and a window in the upper blocks where asked."""

from collections.abc import Set as AbstractSet

from compute.checkpoints.families._attention import refuse_two_way, slides, windowed
from compute.checkpoints.families.llama import IGNORED, llama_config, stored
from compute.checkpoints.family import Family
from compute.checkpoints.fields import Fields
from compute.config import AttentionBias, ModelConfig


def upper_window(fields: Fields, config: ModelConfig) -> ModelConfig:
    """The config with a window in the blocks from `max_window_layers` on, or where `layer_types`
    says so, where `use_sliding_window` is on."""
    refuse_two_way(fields)
    on = fields.flag("use_sliding_window", False)
    first = fields.count_or("max_window_layers", 28)
    sliding = slides(fields, config.n_layers, lambda layer: on and layer >= first)
    if any(sliding) and not on:
        fields.fault("layer_types", "has sliding_attention, but use_sliding_window is false.")
    return windowed(config, sliding, fields.size_or("sliding_window", 4096) if on else None)


def _config(fields: Fields, names: AbstractSet[str]) -> ModelConfig:
    config = llama_config(fields, AttentionBias(q=True, k=True, v=True))
    return upper_window(fields, config)


QWEN2 = Family(
    name="qwen2",
    model_types=("qwen2",),
    config=_config,
    stored=stored,
    prefixes=("model.",),
    ignored=IGNORED,
)
