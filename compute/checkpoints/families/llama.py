"""Llama and its kin: pre-norm RMSNorm, RoPE in halves, grouped heads, a gated ffn.

Mistral is the same with a window.
"""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from compute.checkpoints.families._attention import everywhere, refuse_two_way
from compute.checkpoints.family import Family
from compute.checkpoints.fields import LARGEST_VOCAB, Fields
from compute.checkpoints.rope import rope
from compute.checkpoints.stored import Stored, Table, as_is, by_table, transposed
from compute.config import (
    AttentionBias,
    FfnBias,
    ModelConfig,
    NormConfig,
    attention_config,
    ffn_config,
    position_config,
)

TABLE: Table = {
    "embed.W_E": ("embed_tokens.weight", as_is),
    "blocks.{l}.norm1.weight": ("layers.{l}.input_layernorm.weight", as_is),
    "blocks.{l}.attn.W_Q": ("layers.{l}.self_attn.q_proj.weight", transposed),
    "blocks.{l}.attn.W_K": ("layers.{l}.self_attn.k_proj.weight", transposed),
    "blocks.{l}.attn.W_V": ("layers.{l}.self_attn.v_proj.weight", transposed),
    "blocks.{l}.attn.W_O": ("layers.{l}.self_attn.o_proj.weight", transposed),
    "blocks.{l}.attn.b_Q": ("layers.{l}.self_attn.q_proj.bias", as_is),
    "blocks.{l}.attn.b_K": ("layers.{l}.self_attn.k_proj.bias", as_is),
    "blocks.{l}.attn.b_V": ("layers.{l}.self_attn.v_proj.bias", as_is),
    "blocks.{l}.attn.b_O": ("layers.{l}.self_attn.o_proj.bias", as_is),
    "blocks.{l}.norm2.weight": ("layers.{l}.post_attention_layernorm.weight", as_is),
    "blocks.{l}.ffn.W_in": ("layers.{l}.mlp.up_proj.weight", transposed),
    "blocks.{l}.ffn.W_gate": ("layers.{l}.mlp.gate_proj.weight", transposed),
    "blocks.{l}.ffn.W_out": ("layers.{l}.mlp.down_proj.weight", transposed),
    "blocks.{l}.ffn.b_in": ("layers.{l}.mlp.up_proj.bias", as_is),
    "blocks.{l}.ffn.b_gate": ("layers.{l}.mlp.gate_proj.bias", as_is),
    "blocks.{l}.ffn.b_out": ("layers.{l}.mlp.down_proj.bias", as_is),
    "final_norm.weight": ("norm.weight", as_is),
    "unembed.W_U": ("lm_head.weight", transposed),
}
IGNORED = re.compile(r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq|lm_head\.weight")


def stored(config: ModelConfig) -> Mapping[str, Stored]:
    """Where each tensor lies."""
    return by_table(config, TABLE)


def llama_config(
    fields: Fields,
    bias: AttentionBias,
    window: int | None = None,
    mlp_bias: bool = False,
) -> ModelConfig:
    """What the fields of Llama, Mistral and Qwen2 share."""
    d_model = fields.size("hidden_size")
    n_heads = fields.size("num_attention_heads")
    attention = attention_config(
        d_model,
        n_heads,
        n_kv_heads=fields.size_or("num_key_value_heads", n_heads),
        d_head=fields.size_or("head_dim", None),
        window=window,
        bias=bias,
    )
    turned = rope(fields)
    tied = fields.flag("tie_word_embeddings", False)
    return ModelConfig(
        d_model=d_model,
        n_layers=fields.size("num_hidden_layers"),
        attention=attention,
        ffn=ffn_config(
            d_model,
            "gated",
            d_ff=fields.size("intermediate_size"),
            activation=fields.activation("hidden_act", "silu"),
            bias=FfnBias(in_=mlp_bias, gate=mlp_bias, out=mlp_bias),
        ),
        norm=NormConfig(kind="rmsnorm", eps=fields.number_or("rms_norm_eps", 1e-6)),
        position=position_config(
            "rope",
            attention.d_head,
            theta=turned.theta,
            rotary_dim=int(attention.d_head * turned.fraction),
            scaling=turned.scaling,
        ),
        vocab=fields.size("vocab_size", LARGEST_VOCAB),
        tied=tied,
        readout=tied or not fields.headless,
        unembed_bias=False,
        final_norm=True,
    )


def _llama(fields: Fields, names: AbstractSet[str]) -> ModelConfig:
    refuse_two_way(fields)
    bias = everywhere(fields.flag("attention_bias", False))
    return llama_config(fields, bias, mlp_bias=fields.flag("mlp_bias", False))


def _mistral(fields: Fields, names: AbstractSet[str]) -> ModelConfig:
    refuse_two_way(fields)
    return llama_config(fields, AttentionBias(), window=fields.size_or("sliding_window", None))


LLAMA = Family(
    name="llama",
    model_types=("llama",),
    config=_llama,
    stored=stored,
    prefixes=("model.",),
    ignored=IGNORED,
)
MISTRAL = Family(
    name="mistral",
    model_types=("mistral",),
    config=_mistral,
    stored=stored,
    prefixes=("model.",),
    ignored=IGNORED,
)
