"""BERT: post-norm LayerNorm, no mask, learned positions and token types below a norm.

With or without the head that reads masked tokens; MiniLM is one without.
"""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from compute.checkpoints.family import Family
from compute.checkpoints.fields import LARGEST_VOCAB, Fields
from compute.checkpoints.stored import Stored, Table, as_is, by_table, transposed
from compute.config import (
    AttentionBias,
    AttentionConfig,
    FfnConfig,
    ModelConfig,
    NormConfig,
    attention_config,
    ffn_config,
    position_config,
)

STACK: Table = {
    "embed.W_E": ("embeddings.word_embeddings.weight", as_is),
    "pos_embed.W_pos": ("embeddings.position_embeddings.weight", as_is),
    "type_embed.W_type": ("embeddings.token_type_embeddings.weight", as_is),
    "embed_norm.weight": ("embeddings.LayerNorm.weight", as_is),
    "embed_norm.bias": ("embeddings.LayerNorm.bias", as_is),
    "blocks.{l}.attn.W_Q": ("encoder.layer.{l}.attention.self.query.weight", transposed),
    "blocks.{l}.attn.W_K": ("encoder.layer.{l}.attention.self.key.weight", transposed),
    "blocks.{l}.attn.W_V": ("encoder.layer.{l}.attention.self.value.weight", transposed),
    "blocks.{l}.attn.W_O": ("encoder.layer.{l}.attention.output.dense.weight", transposed),
    "blocks.{l}.attn.b_Q": ("encoder.layer.{l}.attention.self.query.bias", as_is),
    "blocks.{l}.attn.b_K": ("encoder.layer.{l}.attention.self.key.bias", as_is),
    "blocks.{l}.attn.b_V": ("encoder.layer.{l}.attention.self.value.bias", as_is),
    "blocks.{l}.attn.b_O": ("encoder.layer.{l}.attention.output.dense.bias", as_is),
    "blocks.{l}.norm1.weight": ("encoder.layer.{l}.attention.output.LayerNorm.weight", as_is),
    "blocks.{l}.norm1.bias": ("encoder.layer.{l}.attention.output.LayerNorm.bias", as_is),
    "blocks.{l}.ffn.W_in": ("encoder.layer.{l}.intermediate.dense.weight", transposed),
    "blocks.{l}.ffn.b_in": ("encoder.layer.{l}.intermediate.dense.bias", as_is),
    "blocks.{l}.ffn.W_out": ("encoder.layer.{l}.output.dense.weight", transposed),
    "blocks.{l}.ffn.b_out": ("encoder.layer.{l}.output.dense.bias", as_is),
    "blocks.{l}.norm2.weight": ("encoder.layer.{l}.output.LayerNorm.weight", as_is),
    "blocks.{l}.norm2.bias": ("encoder.layer.{l}.output.LayerNorm.bias", as_is),
}
"""What BERT and RoBERTa have in common."""

_TABLE: Table = {
    **STACK,
    "mlm_head.W": ("cls.predictions.transform.dense.weight", transposed),
    "mlm_head.b": ("cls.predictions.transform.dense.bias", as_is),
    "mlm_norm.weight": ("cls.predictions.transform.LayerNorm.weight", as_is),
    "mlm_norm.bias": ("cls.predictions.transform.LayerNorm.bias", as_is),
    "unembed.W_U": ("cls.predictions.decoder.weight", transposed),
    "unembed.b_U": ("cls.predictions.bias", as_is),
}

OTHER_HEADS = r"(pooler|classifier|pre_classifier|qa_outputs)\..+|embeddings\.position_ids"
"""What reads sentences or spans off the stream, and a buffer: not read."""


def encoder(
    fields: Fields,
    *,
    d_model: int,
    n_layers: int,
    attention: AttentionConfig,
    ffn: FfnConfig,
    eps: float,
    n_positions: int,
    token_types: int,
    head: bool,
) -> ModelConfig:
    """What BERT, RoBERTa and DistilBERT share. head: it reads masked tokens out."""
    tied = fields.flag("tie_word_embeddings", True)
    return ModelConfig(
        d_model=d_model,
        n_layers=n_layers,
        attention=attention,
        ffn=ffn,
        norm=NormConfig(placement="post", eps=eps),
        position=position_config("learned", attention.d_head, n_positions=n_positions),
        vocab=fields.size("vocab_size", LARGEST_VOCAB),
        tied=tied and head,
        readout=head,
        unembed_bias=head,
        final_norm=False,
        embed_norm=True,
        token_types=token_types,
        mlm_head=head,
    )


def attention_of(fields: Fields, d_model: int, heads: str) -> AttentionConfig:
    """All biases; no mask but in a decoder. heads: the key of their number."""
    return attention_config(
        d_model,
        fields.size(heads),
        mask="causal" if fields.flag("is_decoder", False) else "full",
        bias=AttentionBias(q=True, k=True, v=True, o=True),
    )


def bert_config(fields: Fields, head: bool, first_position: int = 0) -> ModelConfig:
    """By BERT's keys. first_position: the row of the position table that is position 0's."""
    fields.must_be("add_cross_attention", False, default=False)
    fields.must_be("position_embedding_type", "absolute", default="absolute")
    d_model = fields.size("hidden_size")
    rows = fields.size("max_position_embeddings")
    if rows <= first_position:
        detail = f"must be more than the {first_position} rows that no position has."
        fields.fault("max_position_embeddings", detail, f"above {first_position}", rows)
    return encoder(
        fields,
        d_model=d_model,
        n_layers=fields.size("num_hidden_layers"),
        attention=attention_of(fields, d_model, "num_attention_heads"),
        ffn=ffn_config(
            d_model,
            "mlp",
            d_ff=fields.size("intermediate_size"),
            activation=fields.activation("hidden_act", "gelu"),
        ),
        eps=fields.number_or("layer_norm_eps", 1e-12),
        n_positions=max(rows - first_position, 1),
        token_types=fields.count_or("type_vocab_size", 2),
        head=head,
    )


def _config(fields: Fields, names: AbstractSet[str]) -> ModelConfig:
    return bert_config(fields, head="cls.predictions.transform.dense.weight" in names)


def _stored(config: ModelConfig) -> Mapping[str, Stored]:
    return by_table(config, _TABLE)


BERT = Family(
    name="bert",
    model_types=("bert",),
    config=_config,
    stored=_stored,
    prefixes=("bert.",),
    ignored=re.compile(
        rf"{OTHER_HEADS}|cls\.seq_relationship\..+|cls\.predictions\.decoder\.(weight|bias)"
    ),
)
