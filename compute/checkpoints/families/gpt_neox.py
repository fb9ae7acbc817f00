"""GPT-NeoX (Pythia): LayerNorms before attention and ffn, which read the stream side by side;
part of each head turns; Q, K and V in one matrix, head by head."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from compute.checkpoints.families._attention import everywhere, refuse_two_way, turning
from compute.checkpoints.family import Family
from compute.checkpoints.fields import LARGEST_VOCAB, Fields
from compute.checkpoints.rope import rope
from compute.checkpoints.stored import Layout, Stored, Table, as_is, by_table, one, transposed
from compute.config import ModelConfig, NormConfig, attention_config, ffn_config
from compute.tensors import Tensor


def _third(at: int) -> Layout:
    """Q, K or V of query_key_value: (h d k) from (h 3 k, d), (h k) from (h 3 k)."""

    def layout(name: str, tensor: Tensor) -> Stored:
        if tensor.role == "bias":
            h, k = tensor.shape
            return one(name, (3 * h * k,), lambda values: values.reshape(h, 3, k)[:, at])
        h, d, k = tensor.shape
        return one(
            name,
            (3 * h * k, d),
            lambda values: values.reshape(h, 3, k, d)[:, at].swapaxes(1, 2),
        )

    return layout


_QKV = "layers.{l}.attention.query_key_value"
_TABLE: Table = {
    "embed.W_E": ("embed_in.weight", as_is),
    "blocks.{l}.norm1.weight": ("layers.{l}.input_layernorm.weight", as_is),
    "blocks.{l}.norm1.bias": ("layers.{l}.input_layernorm.bias", as_is),
    "blocks.{l}.attn.W_Q": (f"{_QKV}.weight", _third(0)),
    "blocks.{l}.attn.W_K": (f"{_QKV}.weight", _third(1)),
    "blocks.{l}.attn.W_V": (f"{_QKV}.weight", _third(2)),
    "blocks.{l}.attn.b_Q": (f"{_QKV}.bias", _third(0)),
    "blocks.{l}.attn.b_K": (f"{_QKV}.bias", _third(1)),
    "blocks.{l}.attn.b_V": (f"{_QKV}.bias", _third(2)),
    "blocks.{l}.attn.W_O": ("layers.{l}.attention.dense.weight", transposed),
    "blocks.{l}.attn.b_O": ("layers.{l}.attention.dense.bias", as_is),
    "blocks.{l}.norm2.weight": ("layers.{l}.post_attention_layernorm.weight", as_is),
    "blocks.{l}.norm2.bias": ("layers.{l}.post_attention_layernorm.bias", as_is),
    "blocks.{l}.ffn.W_in": ("layers.{l}.mlp.dense_h_to_4h.weight", transposed),
    "blocks.{l}.ffn.b_in": ("layers.{l}.mlp.dense_h_to_4h.bias", as_is),
    "blocks.{l}.ffn.W_out": ("layers.{l}.mlp.dense_4h_to_h.weight", transposed),
    "blocks.{l}.ffn.b_out": ("layers.{l}.mlp.dense_4h_to_h.bias", as_is),
    "final_norm.weight": ("final_layer_norm.weight", as_is),
    "final_norm.bias": ("final_layer_norm.bias", as_is),
    "unembed.W_U": ("embed_out.weight", transposed),
}


def _stored(config: ModelConfig) -> Mapping[str, Stored]:
    return by_table(config, _TABLE)


def _config(fields: Fields, names: AbstractSet[str]) -> ModelConfig:
    refuse_two_way(fields)
    d_model = fields.size("hidden_size")
    biases = everywhere(fields.flag("attention_bias", True))
    attention = attention_config(d_model, fields.size("num_attention_heads"), bias=biases)
    turned = rope(fields, theta=("rotary_emb_base", 10000.0), fraction=("rotary_pct", 0.25))
    parallel = fields.flag("use_parallel_residual", True)
    tied = fields.flag("tie_word_embeddings", False)
    return ModelConfig(
        d_model=d_model,
        n_layers=fields.size("num_hidden_layers"),
        attention=attention,
        ffn=ffn_config(
            d_model,
            "mlp",
            d_ff=fields.size("intermediate_size"),
            activation=fields.activation("hidden_act", "gelu"),
        ),
        norm=NormConfig(eps=fields.number_or("layer_norm_eps", 1e-5)),
        position=turning(turned, attention.d_head),
        vocab=fields.size("vocab_size", LARGEST_VOCAB),
        tied=tied,
        readout=tied or not fields.headless,
        unembed_bias=False,
        final_norm=True,
        topology="parallel" if parallel else "sequential",
    )


GPT_NEOX = Family(
    name="gpt_neox",
    model_types=("gpt_neox",),
    config=_config,
    stored=_stored,
    prefixes=("gpt_neox.",),
    ignored=re.compile(
        r"layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)|embed_out\.weight"
    ),
)
