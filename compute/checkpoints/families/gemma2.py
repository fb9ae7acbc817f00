"""Gemma 2: norms before and after attention and ffn, capped scores and logits, and a window in
every second block."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import sqrt

from compute.checkpoints.families._attention import (
    everywhere,
    refuse_two_way,
    slides,
    turning,
    windowed,
)
from compute.checkpoints.families.llama import IGNORED, TABLE
from compute.checkpoints.family import Family
from compute.checkpoints.fields import LARGEST_VOCAB, Fields
from compute.checkpoints.rope import Rope, rope
from compute.checkpoints.stored import Stored, Table, as_is, by_table
from compute.config import (
    AttentionConfig,
    FfnBias,
    ModelConfig,
    NormConfig,
    QkNorm,
    attention_config,
    ffn_config,
)

SANDWICH: Table = {
    **TABLE,
    "blocks.{l}.norm1_post.weight": ("layers.{l}.post_attention_layernorm.weight", as_is),
    "blocks.{l}.norm2.weight": ("layers.{l}.pre_feedforward_layernorm.weight", as_is),
    "blocks.{l}.norm2_post.weight": ("layers.{l}.post_feedforward_layernorm.weight", as_is),
}


def _stored(config: ModelConfig) -> Mapping[str, Stored]:
    return by_table(config, SANDWICH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What left out means, where it differs: None caps nothing, as null in the file."""

    vocab: int
    score_cap: float | None = None
    logit_cap: float | None = None


def gemma_config(fields: Fields, turned: Rope, qk_norm: QkNorm, left_out: Defaults) -> ModelConfig:
    """What Gemma 2 and 3 share: norms whose weights are w of 1 + w, embeddings times √d_model."""
    refuse_two_way(fields)
    d_model = fields.size("hidden_size")
    attention = _attention(fields, d_model, qk_norm, left_out.score_cap)
    tied = fields.flag("tie_word_embeddings", True)
    readout = tied or not fields.headless
    logit_cap = _cap(fields, "final_logit_softcapping", left_out.logit_cap)
    return ModelConfig(
        d_model=d_model,
        n_layers=fields.size("num_hidden_layers"),
        attention=attention,
        ffn=ffn_config(
            d_model,
            "gated",
            d_ff=fields.size("intermediate_size"),
            activation=fields.activation("hidden_activation", "gelu_pytorch_tanh"),
            bias=FfnBias(in_=False, gate=False, out=False),
        ),
        norm=NormConfig(
            kind="rmsnorm",
            placement="sandwich",
            eps=fields.number_or("rms_norm_eps", 1e-6),
            gain_offset=1.0,
        ),
        position=turning(turned, attention.d_head),
        vocab=fields.size_or("vocab_size", left_out.vocab, LARGEST_VOCAB),
        tied=tied,
        readout=readout,
        unembed_bias=False,
        final_norm=True,
        embed_multiplier=sqrt(d_model),
        logit_softcap=logit_cap if readout else None,
    )


def _attention(
    fields: Fields, d_model: int, qk_norm: QkNorm, score_cap: float | None
) -> AttentionConfig:
    return attention_config(
        d_model,
        fields.size_or("num_attention_heads", 8),
        n_kv_heads=fields.size_or("num_key_value_heads", 4),
        d_head=fields.size_or("head_dim", 256),
        scale=fields.number_or("query_pre_attn_scalar", 256.0) ** -0.5,
        softcap=_cap(fields, "attn_logit_softcapping", score_cap),
        qk_norm=qk_norm,
        bias=everywhere(fields.flag("attention_bias", False)),
    )


def _cap(fields: Fields, key: str, left_out: float | None) -> float | None:
    """Null caps nothing, and is not the same as left out."""
    if fields.has(key):
        return fields.number(key)
    return None if key in fields.raw else left_out


def _config(fields: Fields, names: AbstractSet[str]) -> ModelConfig:
    defaults = Defaults(vocab=256_000, score_cap=50.0, logit_cap=30.0)
    config = gemma_config(fields, rope(fields), "none", defaults)
    sliding = slides(fields, config.n_layers, lambda layer: layer % 2 == 0)
    return windowed(config, sliding, fields.size_or("sliding_window", 4096))


GEMMA2 = Family(
    name="gemma2",
    model_types=("gemma2",),
    config=_config,
    stored=_stored,
    prefixes=("model.",),
    ignored=IGNORED,
)
