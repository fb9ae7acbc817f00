"""T5, T5 v1.1 and Flan-T5: an encoder, and a decoder that attends to it; RMSNorm, unscaled scores
plus a learned bias for each distance, one table for all blocks of a stack."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from compute.checkpoints.families._attention import refuse_two_way
from compute.checkpoints.family import Family
from compute.checkpoints.fields import ACTIVATIONS, LARGEST_VOCAB, Fields
from compute.checkpoints.stored import Stored, Table, as_is, by_table, transposed
from compute.config import (
    FfnBias,
    FfnConfig,
    ModelConfig,
    NormConfig,
    attention_config,
    ffn_config,
    position_config,
)

_FEED_FORWARD: Mapping[str, tuple[bool, str]] = {
    **{name: (False, name) for name in ACTIVATIONS},
    **{f"gated-{name}": (True, name) for name in ACTIVATIONS},
    "gated-gelu": (True, "gelu_new"),
}
"""feed_forward_proj -> whether the ffn is gated, and its activation."""


def _stack(ours: str, theirs: str, ffn: int, gated: bool) -> Table:
    """A stack's table; `ffn` is the number of the ffn among the layers of a block."""
    of_block, block = f"{ours}blocks.{{l}}.", f"{theirs}.block.{{l}}.layer."
    bias = f"{theirs}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    inner = "wi_1" if gated else "wi"
    return {
        f"{ours}rel_bias.W_rel": (bias, as_is),
        f"{of_block}norm1.weight": (f"{block}0.layer_norm.weight", as_is),
        **_projections(f"{of_block}attn.", f"{block}0.SelfAttention."),
        f"{of_block}norm_cross.weight": (f"{block}1.layer_norm.weight", as_is),
        **_projections(f"{of_block}cross.", f"{block}1.EncDecAttention."),
        f"{of_block}norm2.weight": (f"{block}{ffn}.layer_norm.weight", as_is),
        f"{of_block}ffn.W_in": (f"{block}{ffn}.DenseReluDense.{inner}.weight", transposed),
        f"{of_block}ffn.W_gate": (f"{block}{ffn}.DenseReluDense.wi_0.weight", transposed),
        f"{of_block}ffn.W_out": (f"{block}{ffn}.DenseReluDense.wo.weight", transposed),
        f"{ours}final_norm.weight": (f"{theirs}.final_layer_norm.weight", as_is),
    }


def _projections(ours: str, theirs: str) -> Table:
    return {f"{ours}W_{name}": (f"{theirs}{name.lower()}.weight", transposed) for name in "QKVO"}


def _stored(config: ModelConfig) -> Mapping[str, Stored]:
    gated = config.ffn.kind == "gated"
    table: Table = {
        "embed.W_E": ("shared.weight", as_is),
        **_stack("encoder.", "encoder", 1, gated),
        **_stack("", "decoder", 2, gated),
        "unembed.W_U": ("lm_head.weight", transposed),
    }
    return by_table(config, table)


def _config(fields: Fields, names: AbstractSet[str]) -> ModelConfig:
    """Tied by its config, the output is scaled by 1 / √d_model. A readout in the file counts even
    where `tie_word_embeddings` is true beside it."""
    refuse_two_way(fields)
    fields.must_be("is_encoder_decoder", True, default=True)
    encoder = _encoder(fields)
    tied = fields.flag("tie_word_embeddings", True)
    scaled = fields.flag("scale_decoder_outputs", tied)
    own = "lm_head.weight" in names
    readout = tied or own or not fields.headless
    return replace(
        encoder,
        n_layers=fields.size_or("num_decoder_layers", encoder.n_layers),
        attention=replace(encoder.attention, mask="causal"),
        position=replace(encoder.position, bidirectional=False),
        vocab=fields.size("vocab_size", LARGEST_VOCAB),
        tied=tied and not own,
        readout=readout,
        cross_attention=True,
        logit_multiplier=encoder.d_model**-0.5 if scaled and readout else 1.0,
        encoder=encoder,
    )


def _encoder(fields: Fields) -> ModelConfig:
    d_model, d_head = fields.size("d_model"), fields.size("d_kv")
    n_heads = fields.size("num_heads")
    return ModelConfig(
        d_model=d_model,
        n_layers=fields.size("num_layers"),
        attention=attention_config(d_model, n_heads, d_head=d_head, scale=1.0, mask="full"),
        ffn=_ffn(fields, d_model),
        norm=NormConfig(kind="rmsnorm", eps=fields.number_or("layer_norm_epsilon", 1e-6)),
        position=position_config(
            "t5_bias",
            d_head,
            n_buckets=fields.size_or("relative_attention_num_buckets", 32),
            max_distance=fields.size_or("relative_attention_max_distance", 128),
            bidirectional=True,
        ),
        vocab=None,
        tied=False,
        unembed_bias=False,
        final_norm=True,
    )


def _ffn(fields: Fields, d_model: int) -> FfnConfig:
    gated, activation = fields.choice("feed_forward_proj", _FEED_FORWARD, "relu")
    return ffn_config(
        d_model,
        "gated" if fields.flag("is_gated_act", gated) else "mlp",
        d_ff=fields.size("d_ff"),
        activation=fields.activation("dense_act_fn", activation),
        bias=FfnBias(in_=False, gate=False, out=False),
    )


T5 = Family(
    name="t5",
    model_types=("t5",),
    config=_config,
    stored=_stored,
    ignored=re.compile(
        r"(encoder|decoder)\.embed_tokens\.weight"
        r"|decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight"
    ),
)
