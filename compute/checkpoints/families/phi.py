"""Phi: one LayerNorm feeds attention and ffn, which read the stream side by side; part of each
head turns; biases everywhere, the readout's too."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from compute.checkpoints.families._attention import everywhere, refuse_two_way, turning
from compute.checkpoints.family import Family
from compute.checkpoints.fields import LARGEST_VOCAB, Fields
from compute.checkpoints.rope import rope
from compute.checkpoints.stored import Stored, Table, as_is, by_table, transposed
from compute.config import AttentionConfig, ModelConfig, NormConfig, attention_config, ffn_config

_TABLE: Table = {
    "embed.W_E": ("embed_tokens.weight", as_is),
    "blocks.{l}.norm1.weight": ("layers.{l}.input_layernorm.weight", as_is),
    "blocks.{l}.norm1.bias": ("layers.{l}.input_layernorm.bias", as_is),
    "blocks.{l}.attn.W_Q": ("layers.{l}.self_attn.q_proj.weight", transposed),
    "blocks.{l}.attn.W_K": ("layers.{l}.self_attn.k_proj.weight", transposed),
    "blocks.{l}.attn.W_V": ("layers.{l}.self_attn.v_proj.weight", transposed),
    "blocks.{l}.attn.W_O": ("layers.{l}.self_attn.dense.weight", transposed),
    "blocks.{l}.attn.b_Q": ("layers.{l}.self_attn.q_proj.bias", as_is),
    "blocks.{l}.attn.b_K": ("layers.{l}.self_attn.k_proj.bias", as_is),
    "blocks.{l}.attn.b_V": ("layers.{l}.self_attn.v_proj.bias", as_is),
    "blocks.{l}.attn.b_O": ("layers.{l}.self_attn.dense.bias", as_is),
    "blocks.{l}.attn.q_norm.weight": ("layers.{l}.self_attn.q_layernorm.weight", as_is),
    "blocks.{l}.attn.q_norm.bias": ("layers.{l}.self_attn.q_layernorm.bias", as_is),
    "blocks.{l}.attn.k_norm.weight": ("layers.{l}.self_attn.k_layernorm.weight", as_is),
    "blocks.{l}.attn.k_norm.bias": ("layers.{l}.self_attn.k_layernorm.bias", as_is),
    "blocks.{l}.ffn.W_in": ("layers.{l}.mlp.fc1.weight", transposed),
    "blocks.{l}.ffn.b_in": ("layers.{l}.mlp.fc1.bias", as_is),
    "blocks.{l}.ffn.W_out": ("layers.{l}.mlp.fc2.weight", transposed),
    "blocks.{l}.ffn.b_out": ("layers.{l}.mlp.fc2.bias", as_is),
    "final_norm.weight": ("final_layernorm.weight", as_is),
    "final_norm.bias": ("final_layernorm.bias", as_is),
    "unembed.W_U": ("lm_head.weight", transposed),
    "unembed.b_U": ("lm_head.bias", as_is),
}


def _stored(config: ModelConfig) -> Mapping[str, Stored]:
    return by_table(config, _TABLE)


def _config(fields: Fields, names: AbstractSet[str]) -> ModelConfig:
    refuse_two_way(fields)
    d_model = fields.size("hidden_size")
    attention = _attention(fields, d_model)
    readout = not fields.headless
    return ModelConfig(
        d_model=d_model,
        n_layers=fields.size("num_hidden_layers"),
        attention=attention,
        ffn=ffn_config(
            d_model,
            "mlp",
            d_ff=fields.size("intermediate_size"),
            activation=fields.activation("hidden_act", "gelu_new"),
        ),
        norm=NormConfig(eps=fields.number_or("layer_norm_eps", 1e-5), shared=True),
        position=turning(rope(fields, fraction=("partial_rotary_factor", 0.5)), attention.d_head),
        vocab=fields.size("vocab_size", LARGEST_VOCAB),
        tied=readout and fields.flag("tie_word_embeddings", False),
        readout=readout,
        unembed_bias=readout,
        final_norm=True,
        topology="parallel",
    )


def _attention(fields: Fields, d_model: int) -> AttentionConfig:
    n_heads = fields.size("num_attention_heads")
    return attention_config(
        d_model,
        n_heads,
        n_kv_heads=fields.size_or("num_key_value_heads", n_heads),
        qk_norm="head" if fields.flag("qk_layernorm", False) else "none",
        bias=everywhere(True),
    )


PHI = Family(
    name="phi",
    model_types=("phi",),
    config=_config,
    stored=_stored,
    prefixes=("model.",),
    ignored=re.compile(r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq|lm_head\.weight"),
)
