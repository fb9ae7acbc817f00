"""RoBERTa: BERT whose positions begin at row 2 of their table, after the padding token's row 1."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from compute.checkpoints.families.bert import OTHER_HEADS, STACK, bert_config
from compute.checkpoints.family import Family
from compute.checkpoints.fields import Fields
from compute.checkpoints.stored import Stored, Table, as_is, by_table, rows_from, transposed
from compute.config import ModelConfig

_PADDING = 1
_FIRST = _PADDING + 1

_TABLE: Table = {
    **STACK,
    "pos_embed.W_pos": ("embeddings.position_embeddings.weight", rows_from(_FIRST)),
    "mlm_head.W": ("lm_head.dense.weight", transposed),
    "mlm_head.b": ("lm_head.dense.bias", as_is),
    "mlm_norm.weight": ("lm_head.layer_norm.weight", as_is),
    "mlm_norm.bias": ("lm_head.layer_norm.bias", as_is),
    "unembed.W_U": ("lm_head.decoder.weight", transposed),
    "unembed.b_U": ("lm_head.bias", as_is),
}


def _config(fields: Fields, names: AbstractSet[str]) -> ModelConfig:
    head = "lm_head.dense.weight" in names
    fields.must_be("pad_token_id", _PADDING, default=_PADDING)
    if head:  # whose activation is gelu whatever the ffn's is
        fields.must_be("hidden_act", "gelu", default="gelu")
    return bert_config(fields, head, first_position=_FIRST)


def _stored(config: ModelConfig) -> Mapping[str, Stored]:
    return by_table(config, _TABLE)


ROBERTA = Family(
    name="roberta",
    model_types=("roberta", "xlm-roberta"),
    config=_config,
    stored=_stored,
    prefixes=("roberta.",),
    ignored=re.compile(rf"{OTHER_HEADS}|lm_head\.decoder\.(weight|bias)"),
)
