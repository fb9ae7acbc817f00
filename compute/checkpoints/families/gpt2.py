"""GPT-2: pre-norm LayerNorm, learned positions, matrices (in, out), Q, K and V in one."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from compute.checkpoints.family import Family
from compute.checkpoints.fields import LARGEST_VOCAB, Fields
from compute.checkpoints.rope import NO_SCALING
from compute.checkpoints.stored import (
    Layout,
    Stored,
    Table,
    as_is,
    by_table,
    one,
    side_by_side,
    transposed,
)
from compute.config import (
    AttentionBias,
    AttentionConfig,
    LayerConfig,
    ModelConfig,
    NormConfig,
    attention_config,
    ffn_config,
    position_config,
)
from compute.tensors import Tensor


def _third(at: int) -> Layout:
    """Q, K or V of c_attn: (h d k) from (d, 3 h k), (h k) from (3 h k)."""

    def layout(name: str, tensor: Tensor) -> Stored:
        part = (side_by_side if tensor.role == "matrix" else as_is)(name, tensor)
        (shape,) = part.shapes
        *rows, width = shape
        mine = slice(at * width, (at + 1) * width)
        return one(name, (*rows, 3 * width), lambda values: part.make(values[..., mine]))

    return layout


_TABLE: Table = {
    "embed.W_E": ("wte.weight", as_is),
    "pos_embed.W_pos": ("wpe.weight", as_is),
    "blocks.{l}.norm1.weight": ("h.{l}.ln_1.weight", as_is),
    "blocks.{l}.norm1.bias": ("h.{l}.ln_1.bias", as_is),
    "blocks.{l}.attn.W_Q": ("h.{l}.attn.c_attn.weight", _third(0)),
    "blocks.{l}.attn.W_K": ("h.{l}.attn.c_attn.weight", _third(1)),
    "blocks.{l}.attn.W_V": ("h.{l}.attn.c_attn.weight", _third(2)),
    "blocks.{l}.attn.b_Q": ("h.{l}.attn.c_attn.bias", _third(0)),
    "blocks.{l}.attn.b_K": ("h.{l}.attn.c_attn.bias", _third(1)),
    "blocks.{l}.attn.b_V": ("h.{l}.attn.c_attn.bias", _third(2)),
    "blocks.{l}.attn.W_O": ("h.{l}.attn.c_proj.weight", side_by_side),
    "blocks.{l}.attn.b_O": ("h.{l}.attn.c_proj.bias", as_is),
    "blocks.{l}.norm2.weight": ("h.{l}.ln_2.weight", as_is),
    "blocks.{l}.norm2.bias": ("h.{l}.ln_2.bias", as_is),
    "blocks.{l}.ffn.W_in": ("h.{l}.mlp.c_fc.weight", side_by_side),
    "blocks.{l}.ffn.b_in": ("h.{l}.mlp.c_fc.bias", as_is),
    "blocks.{l}.ffn.W_out": ("h.{l}.mlp.c_proj.weight", side_by_side),
    "blocks.{l}.ffn.b_out": ("h.{l}.mlp.c_proj.bias", as_is),
    "final_norm.weight": ("ln_f.weight", as_is),
    "final_norm.bias": ("ln_f.bias", as_is),
    "unembed.W_U": ("lm_head.weight", transposed),
}


def _stored(config: ModelConfig) -> Mapping[str, Stored]:
    return by_table(config, _TABLE)


def _config(fields: Fields, names: AbstractSet[str]) -> ModelConfig:
    fields.must_be("add_cross_attention", False, default=False)
    d_model = fields.size("n_embd")
    attention = _attention(fields, d_model)
    n_layers = fields.size("n_layer")
    tied = fields.flag("tie_word_embeddings", True)
    n_positions = fields.size("n_positions")
    return ModelConfig(
        d_model=d_model,
        n_layers=n_layers,
        attention=attention,
        ffn=ffn_config(
            d_model,
            "mlp",
            d_ff=fields.size_or("n_inner", None),
            activation=fields.activation("activation_function", "gelu_new"),
        ),
        norm=NormConfig(eps=fields.number_or("layer_norm_epsilon", 1e-5)),
        position=position_config("learned", attention.d_head, n_positions=n_positions),
        vocab=fields.size("vocab_size", LARGEST_VOCAB),
        tied=tied,
        readout=tied or not fields.headless,
        unembed_bias=False,
        final_norm=True,
        layers=_layers(fields, attention.scale, n_layers),
    )


def _attention(fields: Fields, d_model: int) -> AttentionConfig:
    return attention_config(
        d_model,
        fields.size("n_head"),
        scale=None if fields.flag("scale_attn_weights", True) else 1.0,
        bias=AttentionBias(q=True, k=True, v=True, o=True),
    )


def _layers(fields: Fields, scale: float, n_layers: int) -> tuple[LayerConfig, ...]:
    """Each block's scale divided by its number from 1, where the config says so."""
    if not fields.flag("scale_attn_by_inverse_layer_idx", False):
        return ()
    return tuple(
        LayerConfig(window=None, scale=scale / (layer + 1), theta=None, scaling=NO_SCALING)
        for layer in range(n_layers)
    )


GPT2 = Family(
    name="gpt2",
    model_types=("gpt2",),
    config=_config,
    stored=_stored,
    prefixes=("transformer.",),
    ignored=re.compile(r"h\.\d+\.attn\.(bias|masked_bias)|lm_head\.weight"),
)
