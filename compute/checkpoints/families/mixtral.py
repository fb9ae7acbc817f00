"""Mixtral: Llama's attention, and a mixture of gated experts for the ffn."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from compute.checkpoints.families._attention import refuse_two_way
from compute.checkpoints.families.llama import IGNORED, TABLE, llama_config
from compute.checkpoints.family import Family
from compute.checkpoints.fields import Fields
from compute.checkpoints.rope import rope
from compute.checkpoints.stored import Layout, Stored, Table, by_table, each_expert, one, transposed
from compute.config import AttentionBias, ModelConfig
from compute.tensors import Tensor

_EXPERT = "layers.{l}.block_sparse_moe.experts.{e}"
_TABLE: Table = {
    **TABLE,
    "blocks.{l}.ffn.W_router": ("layers.{l}.block_sparse_moe.gate.weight", transposed),
    "blocks.{l}.ffn.W_gate": (f"{_EXPERT}.w1.weight", each_expert(transposed)),
    "blocks.{l}.ffn.W_in": (f"{_EXPERT}.w3.weight", each_expert(transposed)),
    "blocks.{l}.ffn.W_out": (f"{_EXPERT}.w2.weight", each_expert(transposed)),
}


def _half(at: int) -> Layout:
    """W_gate or W_in of all experts, (e d f) from (e, 2 f, d), the gates' rows first."""

    def layout(name: str, tensor: Tensor) -> Stored:
        experts, rows, width = tensor.shape
        mine = slice(at * width, (at + 1) * width)
        shape = (experts, 2 * width, rows)
        return one(name, shape, lambda values: values[:, mine].swapaxes(1, 2))

    return layout


def _each_transposed(name: str, tensor: Tensor) -> Stored:
    """(e f d) from (e, d, f)."""
    experts, rows, columns = tensor.shape
    return one(name, (experts, columns, rows), lambda values: values.swapaxes(1, 2))


_FUSED_TABLE: Table = {
    **TABLE,
    "blocks.{l}.ffn.W_router": ("layers.{l}.mlp.gate.weight", transposed),
    "blocks.{l}.ffn.W_gate": ("layers.{l}.mlp.experts.gate_up_proj", _half(0)),
    "blocks.{l}.ffn.W_in": ("layers.{l}.mlp.experts.gate_up_proj", _half(1)),
    "blocks.{l}.ffn.W_out": ("layers.{l}.mlp.experts.down_proj", _each_transposed),
}


def _stored(config: ModelConfig) -> Mapping[str, Stored]:
    return by_table(config, _TABLE)


def _stored_fused(config: ModelConfig) -> Mapping[str, Stored]:
    return by_table(config, _FUSED_TABLE)


def _config(fields: Fields, names: AbstractSet[str]) -> ModelConfig:
    refuse_two_way(fields)
    window = fields.size_or("sliding_window", None)
    config = llama_config(fields, AttentionBias(), window=window)
    theta = rope(fields, theta=("rope_theta", 1e6)).theta
    return replace(
        config,
        ffn=replace(
            config.ffn,
            kind="moe",
            n_experts=fields.size_or("num_local_experts", 8),
            top_k=fields.size_or("num_experts_per_tok", 2),
        ),
        norm=replace(config.norm, eps=fields.number_or("rms_norm_eps", 1e-5)),
        position=replace(config.position, theta=theta),
    )


_FUSED = Family(
    name="mixtral",
    model_types=("mixtral",),
    config=_config,
    stored=_stored_fused,
    prefixes=("model.",),
    ignored=IGNORED,
    marks=re.compile(r"layers\.0\.mlp\.experts\.gate_up_proj"),
)
MIXTRAL = Family(
    name="mixtral",
    model_types=("mixtral",),
    config=_config,
    stored=_stored,
    prefixes=("model.",),
    ignored=IGNORED,
    variants=(_FUSED,),
)
