"""OPT: LayerNorm before attention and ffn (or after each addition), learned positions whose table
begins with two rows that belong to no position."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from compute.checkpoints.families._attention import everywhere, refuse_two_way
from compute.checkpoints.family import Family
from compute.checkpoints.fields import LARGEST_VOCAB, Fields
from compute.checkpoints.stored import Stored, Table, as_is, by_table, rows_from, transposed
from compute.config import (
    FfnBias,
    ModelConfig,
    NormConfig,
    attention_config,
    ffn_config,
    position_config,
)

_TABLE: Table = {
    "embed.W_E": ("embed_tokens.weight", as_is),
    "pos_embed.W_pos": ("embed_positions.weight", rows_from(2)),
    "blocks.{l}.norm1.weight": ("layers.{l}.self_attn_layer_norm.weight", as_is),
    "blocks.{l}.norm1.bias": ("layers.{l}.self_attn_layer_norm.bias", as_is),
    "blocks.{l}.attn.W_Q": ("layers.{l}.self_attn.q_proj.weight", transposed),
    "blocks.{l}.attn.W_K": ("layers.{l}.self_attn.k_proj.weight", transposed),
    "blocks.{l}.attn.W_V": ("layers.{l}.self_attn.v_proj.weight", transposed),
    "blocks.{l}.attn.W_O": ("layers.{l}.self_attn.out_proj.weight", transposed),
    "blocks.{l}.attn.b_Q": ("layers.{l}.self_attn.q_proj.bias", as_is),
    "blocks.{l}.attn.b_K": ("layers.{l}.self_attn.k_proj.bias", as_is),
    "blocks.{l}.attn.b_V": ("layers.{l}.self_attn.v_proj.bias", as_is),
    "blocks.{l}.attn.b_O": ("layers.{l}.self_attn.out_proj.bias", as_is),
    "blocks.{l}.norm2.weight": ("layers.{l}.final_layer_norm.weight", as_is),
    "blocks.{l}.norm2.bias": ("layers.{l}.final_layer_norm.bias", as_is),
    "blocks.{l}.ffn.W_in": ("layers.{l}.fc1.weight", transposed),
    "blocks.{l}.ffn.b_in": ("layers.{l}.fc1.bias", as_is),
    "blocks.{l}.ffn.W_out": ("layers.{l}.fc2.weight", transposed),
    "blocks.{l}.ffn.b_out": ("layers.{l}.fc2.bias", as_is),
    "final_norm.weight": ("final_layer_norm.weight", as_is),
    "final_norm.bias": ("final_layer_norm.bias", as_is),
    "unembed.W_U": ("lm_head.weight", transposed),
}


def _stored(config: ModelConfig) -> Mapping[str, Stored]:
    return by_table(config, _TABLE)


def _config(fields: Fields, names: AbstractSet[str]) -> ModelConfig:
    refuse_two_way(fields)
    d_model = fields.size("hidden_size")
    fields.must_be("word_embed_proj_dim", d_model, default=d_model)
    fields.must_be("layer_norm_elementwise_affine", True, default=True)
    biased = fields.flag("enable_bias", True)
    n_heads = fields.size("num_attention_heads")
    attention = attention_config(d_model, n_heads, bias=everywhere(biased))
    before = fields.flag("do_layer_norm_before", True)
    n_positions = fields.size("max_position_embeddings")
    tied = fields.flag("tie_word_embeddings", True)
    return ModelConfig(
        d_model=d_model,
        n_layers=fields.size("num_hidden_layers"),
        attention=attention,
        ffn=ffn_config(
            d_model,
            "mlp",
            d_ff=fields.size("ffn_dim"),
            activation=fields.activation("activation_function", "relu"),
            bias=FfnBias(in_=biased, out=biased),
        ),
        norm=NormConfig(placement="pre" if before else "post", eps=1e-5),
        position=position_config("learned", attention.d_head, n_positions=n_positions),
        vocab=fields.size("vocab_size", LARGEST_VOCAB),
        tied=tied,
        readout=tied or not fields.headless,
        unembed_bias=False,
        final_norm=before and not fields.flag("_remove_final_layer_norm", False),
    )


OPT = Family(
    name="opt",
    model_types=("opt",),
    config=_config,
    stored=_stored,
    prefixes=("model.decoder.", "decoder."),
    ignored=re.compile(r"lm_head\.weight"),
)
