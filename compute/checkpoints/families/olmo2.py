"""OLMo 2: norms on the outputs of attention and ffn, queries and keys normalized over all heads."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from compute.checkpoints.families._attention import everywhere, refuse_two_way
from compute.checkpoints.families.llama import IGNORED, TABLE, llama_config
from compute.checkpoints.families.qwen3 import QK_NORM
from compute.checkpoints.family import Family
from compute.checkpoints.fields import Fields
from compute.checkpoints.stored import Stored, Table, as_is, by_table
from compute.config import ModelConfig, NormConfig

_TABLE: Table = {
    **TABLE,
    **QK_NORM,
    "blocks.{l}.norm1_post.weight": ("layers.{l}.post_attention_layernorm.weight", as_is),
    "blocks.{l}.norm2_post.weight": ("layers.{l}.post_feedforward_layernorm.weight", as_is),
}


def _stored(config: ModelConfig) -> Mapping[str, Stored]:
    return by_table(config, _TABLE)


def _config(fields: Fields, names: AbstractSet[str]) -> ModelConfig:
    refuse_two_way(fields)
    config = llama_config(fields, everywhere(fields.flag("attention_bias", False)))
    eps = fields.number_or("rms_norm_eps", 1e-5)
    return replace(
        config,
        attention=replace(config.attention, qk_norm="full"),
        norm=NormConfig(kind="rmsnorm", placement="output", eps=eps),
    )


OLMO2 = Family(
    name="olmo2",
    model_types=("olmo2",),
    config=_config,
    stored=_stored,
    prefixes=("model.",),
    ignored=IGNORED,
)
