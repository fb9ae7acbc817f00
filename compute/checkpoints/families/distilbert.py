"""DistilBERT: BERT without token types, by names of its own."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from compute.checkpoints.families.bert import OTHER_HEADS, attention_of, encoder
from compute.checkpoints.family import Family
from compute.checkpoints.fields import Fields
from compute.checkpoints.stored import Stored, Table, as_is, by_table, transposed
from compute.config import ModelConfig, ffn_config

_EPS = 1e-12
_LAYER = "transformer.layer.{l}."

_TABLE: Table = {
    "embed.W_E": ("embeddings.word_embeddings.weight", as_is),
    "pos_embed.W_pos": ("embeddings.position_embeddings.weight", as_is),
    "embed_norm.weight": ("embeddings.LayerNorm.weight", as_is),
    "embed_norm.bias": ("embeddings.LayerNorm.bias", as_is),
    "blocks.{l}.attn.W_Q": (f"{_LAYER}attention.q_lin.weight", transposed),
    "blocks.{l}.attn.W_K": (f"{_LAYER}attention.k_lin.weight", transposed),
    "blocks.{l}.attn.W_V": (f"{_LAYER}attention.v_lin.weight", transposed),
    "blocks.{l}.attn.W_O": (f"{_LAYER}attention.out_lin.weight", transposed),
    "blocks.{l}.attn.b_Q": (f"{_LAYER}attention.q_lin.bias", as_is),
    "blocks.{l}.attn.b_K": (f"{_LAYER}attention.k_lin.bias", as_is),
    "blocks.{l}.attn.b_V": (f"{_LAYER}attention.v_lin.bias", as_is),
    "blocks.{l}.attn.b_O": (f"{_LAYER}attention.out_lin.bias", as_is),
    "blocks.{l}.norm1.weight": (f"{_LAYER}sa_layer_norm.weight", as_is),
    "blocks.{l}.norm1.bias": (f"{_LAYER}sa_layer_norm.bias", as_is),
    "blocks.{l}.ffn.W_in": (f"{_LAYER}ffn.lin1.weight", transposed),
    "blocks.{l}.ffn.b_in": (f"{_LAYER}ffn.lin1.bias", as_is),
    "blocks.{l}.ffn.W_out": (f"{_LAYER}ffn.lin2.weight", transposed),
    "blocks.{l}.ffn.b_out": (f"{_LAYER}ffn.lin2.bias", as_is),
    "blocks.{l}.norm2.weight": (f"{_LAYER}output_layer_norm.weight", as_is),
    "blocks.{l}.norm2.bias": (f"{_LAYER}output_layer_norm.bias", as_is),
    "mlm_head.W": ("vocab_transform.weight", transposed),
    "mlm_head.b": ("vocab_transform.bias", as_is),
    "mlm_norm.weight": ("vocab_layer_norm.weight", as_is),
    "mlm_norm.bias": ("vocab_layer_norm.bias", as_is),
    "unembed.W_U": ("vocab_projector.weight", transposed),
    "unembed.b_U": ("vocab_projector.bias", as_is),
}


def _config(fields: Fields, names: AbstractSet[str]) -> ModelConfig:
    d_model = fields.size("dim")
    return encoder(
        fields,
        d_model=d_model,
        n_layers=fields.size("n_layers"),
        attention=attention_of(fields, d_model, "n_heads"),
        ffn=ffn_config(
            d_model,
            "mlp",
            d_ff=fields.size("hidden_dim"),
            activation=fields.activation("activation", "gelu"),
        ),
        eps=_EPS,
        n_positions=fields.size("max_position_embeddings"),
        token_types=0,
        head="vocab_transform.weight" in names,
    )


def _stored(config: ModelConfig) -> Mapping[str, Stored]:
    return by_table(config, _TABLE)


DISTILBERT = Family(
    name="distilbert",
    model_types=("distilbert",),
    config=_config,
    stored=_stored,
    prefixes=("distilbert.",),
    ignored=re.compile(rf"{OTHER_HEADS}|vocab_projector\.weight"),
)
