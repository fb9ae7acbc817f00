"""Upstream's models that are no family of ours, each known for an option, as our config and
tensors: their state dicts written out by hand."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from safetensors.numpy import load_file

from compute.config import (
    AttentionBias,
    FfnBias,
    LayerConfig,
    ModelConfig,
    NormConfig,
    RopeScaling,
    attention_config,
    ffn_config,
    position_config,
)
from parity.layouts import (
    NO_BIAS,
    Named,
    everywhere,
    gated_ffn,
    joined,
    linear,
    llama_attention,
    llama_like,
    norm,
    split,
    stack,
    t5_attention,
    t5_block,
    torch_attention,
)
from parity.references import HERE, Arrays


def option(folder: str) -> tuple[ModelConfig, Named]:
    """A folder's config and tensors, as ours."""
    return OPTIONS[folder](load_file(HERE / folder / "model.safetensors"))


def bloom(theirs: Arrays) -> tuple[ModelConfig, Named]:
    """ALiBi with six heads; a norm of the embeddings; q, k and v side by side within a head."""
    h, k, d = 6, 2, 12
    config = replace(
        stack(d, "mlp", 48, "gelu_tanh", vocab=23, tied=True),
        attention=attention_config(d, h, bias=everywhere()),
        norm=NormConfig(eps=1e-3),
        position=position_config("alibi", k),
        embed_norm=True,
    )
    block = "transformer.h.0."
    qkv = theirs[f"{block}self_attention.query_key_value.weight"].reshape(h, 3, k, d)
    biases = theirs[f"{block}self_attention.query_key_value.bias"].reshape(h, 3, k)
    ours = {
        "embed.W_E": theirs["transformer.word_embeddings.weight"],
        **norm("embed_norm", theirs, "transformer.word_embeddings_layernorm"),
        **norm("blocks.0.norm1", theirs, f"{block}input_layernorm"),
        **{f"blocks.0.attn.W_{x}": qkv[:, i].swapaxes(1, 2) for i, x in enumerate("QKV")},
        **{f"blocks.0.attn.b_{x}": biases[:, i] for i, x in enumerate("QKV")},
        "blocks.0.attn.W_O": joined(theirs[f"{block}self_attention.dense.weight"], h),
        "blocks.0.attn.b_O": theirs[f"{block}self_attention.dense.bias"],
        **norm("blocks.0.norm2", theirs, f"{block}post_attention_layernorm"),
        **linear("blocks.0.ffn", "in", theirs, f"{block}mlp.dense_h_to_4h"),
        **linear("blocks.0.ffn", "out", theirs, f"{block}mlp.dense_4h_to_h"),
        **norm("final_norm", theirs, "transformer.ln_f"),
    }
    return config, ours


def granite(theirs: Arrays) -> tuple[ModelConfig, Named]:
    """Multipliers of the embeddings, the scores, what parts add, and the logits."""
    config = replace(
        stack(8, "gated", 12, "silu", vocab=23),
        attention=attention_config(8, 2, n_kv_heads=1, scale=0.3),
        position=position_config("rope", 4),
        embed_multiplier=1.5,
        residual_multiplier=0.6,
        logit_multiplier=1 / 2.5,
    )
    return config, {**llama_like(theirs, 2, 1), **gated_ffn(theirs)}


def gpt_oss(theirs: Arrays) -> tuple[ModelConfig, Named]:
    """Sinks; experts (up + 1) · gate σ(1.702 gate), the columns of gate and up by turns, whose
    bounds of ±7 nothing here reaches."""
    config = replace(
        stack(8, "moe", 12, "quick_gelu", vocab=23),
        attention=attention_config(
            8, 4, n_kv_heads=2, d_head=4, window=3, sinks=True, bias=everywhere()
        ),
        position=position_config("rope", 4, theta=100.0),
    )
    experts = ffn_config(
        8,
        "moe",
        d_ff=12,
        activation="quick_gelu",
        bias=FfnBias(in_=True, gate=True, out=True),
        n_experts=3,
        top_k=2,
        router_bias=True,
    )
    block = "model.layers.0."
    gate_up = theirs[f"{block}mlp.experts.gate_up_proj"]
    biases = theirs[f"{block}mlp.experts.gate_up_proj_bias"]
    ours = {
        **llama_like(theirs, 4, 2),
        "blocks.0.attn.b_O": theirs[f"{block}self_attn.o_proj.bias"],
        "blocks.0.attn.sinks": theirs[f"{block}self_attn.sinks"],
        "blocks.0.ffn.W_router": theirs[f"{block}mlp.router.weight"].T,
        "blocks.0.ffn.b_router": theirs[f"{block}mlp.router.bias"],
        "blocks.0.ffn.W_gate": gate_up[..., 0::2],
        "blocks.0.ffn.b_gate": biases[..., 0::2],
        "blocks.0.ffn.W_in": gate_up[..., 1::2],
        "blocks.0.ffn.b_in": biases[..., 1::2].astype(np.float64) + 1.0,
        "blocks.0.ffn.W_out": theirs[f"{block}mlp.experts.down_proj"],
        "blocks.0.ffn.b_out": theirs[f"{block}mlp.experts.down_proj_bias"],
    }
    return replace(config, ffn=experts), ours


def qwen2_moe(theirs: Arrays) -> tuple[ModelConfig, Named]:
    """A shared expert behind a gate; the chosen experts' weights are not renormalised."""
    experts = ffn_config(
        8,
        "moe",
        d_ff=5,
        activation="silu",
        n_experts=3,
        top_k=2,
        renormalize=False,
        d_shared=6,
        shared_gate=True,
    )
    config = replace(
        stack(8, "gated", 12, "silu", vocab=23),
        attention=attention_config(8, 2, n_kv_heads=1, bias=AttentionBias(q=True, k=True, v=True)),
        position=position_config("rope", 4),
        ffn=experts,
    )
    part = "model.layers.0.mlp."
    ours = {
        **llama_like(theirs, 2, 1),
        "blocks.0.ffn.W_router": theirs[f"{part}gate.weight"].T,
        "blocks.0.ffn.W_shared_weight": theirs[f"{part}shared_expert_gate.weight"].T,
    }
    for own, name in (("gate", "gate_proj"), ("in", "up_proj"), ("out", "down_proj")):
        each = [theirs[f"{part}experts.{e}.{name}.weight"].T for e in range(3)]
        ours[f"blocks.0.ffn.W_{own}"] = np.stack(each)
        ours[f"blocks.0.ffn.W_shared_{own}"] = theirs[f"{part}shared_expert.{name}.weight"].T
    return config, ours


def granite_moe_shared(theirs: Arrays) -> tuple[ModelConfig, Named]:
    """A shared expert that nothing weighs; gates and ups one below the other."""
    experts = ffn_config(8, "moe", d_ff=5, activation="silu", n_experts=3, top_k=2, d_shared=6)
    config = replace(
        stack(8, "moe", 5, "silu", vocab=23),
        attention=attention_config(8, 2, n_kv_heads=1, scale=1.0),
        position=position_config("rope", 4, theta=100.0),
        ffn=experts,
    )
    block = "model.layers.0."
    gates, ups = np.split(theirs[f"{block}block_sparse_moe.input_linear.weight"], 2, axis=1)
    gate, up = np.split(theirs[f"{block}shared_mlp.input_linear.weight"], 2)
    down = theirs[f"{block}block_sparse_moe.output_linear.weight"]
    ours = {
        **llama_like(theirs, 2, 1),
        "blocks.0.ffn.W_router": theirs[f"{block}block_sparse_moe.router.layer.weight"].T,
        "blocks.0.ffn.W_gate": gates.swapaxes(1, 2),
        "blocks.0.ffn.W_in": ups.swapaxes(1, 2),
        "blocks.0.ffn.W_out": down.swapaxes(1, 2),
        "blocks.0.ffn.W_shared_gate": gate.T,
        "blocks.0.ffn.W_shared_in": up.T,
        "blocks.0.ffn.W_shared_out": theirs[f"{block}shared_mlp.output_linear.weight"].T,
    }
    return config, ours


def switch(theirs: Arrays) -> tuple[ModelConfig, Named]:
    """T5 whose tokens go to one of three experts without a gate, weighed by its share of all."""
    experts = ffn_config(
        8,
        "moe",
        d_ff=12,
        activation="relu",
        n_experts=3,
        top_k=1,
        expert="mlp",
        renormalize=False,
    )
    t5_bias = position_config("t5_bias", 3, n_buckets=8, max_distance=12, bidirectional=True)
    encoder = replace(
        stack(8, "moe", 12, "relu", vocab=None),
        attention=attention_config(8, 2, d_head=3, scale=1.0, mask="full"),
        position=t5_bias,
        ffn=experts,
    )
    config = replace(
        encoder,
        attention=replace(encoder.attention, mask="causal"),
        position=replace(t5_bias, bidirectional=False),
        vocab=23,
        tied=True,
        cross_attention=True,
        logit_multiplier=8**-0.5,
        encoder=encoder,
    )
    ours = {"embed.W_E": theirs["shared.weight"]}
    ours |= t5_block("encoder.", theirs, "encoder.", 1) | t5_block("", theirs, "decoder.", 2)
    across = "decoder.block.0.layer.1."
    ours |= t5_attention("blocks.0.cross.", theirs, f"{across}EncDecAttention.")
    return config, ours | norm("blocks.0.norm_cross", theirs, f"{across}layer_norm")


def gptj(theirs: Arrays) -> tuple[ModelConfig, Named]:
    """Interleaved rotary pairs in half of a head; parallel with one norm; a bias of the head."""
    config = replace(
        stack(16, "mlp", 12, "gelu_tanh", vocab=23),
        attention=attention_config(16, 2),
        norm=NormConfig(eps=1e-3, shared=True),
        position=position_config("rope", 8, rotary_dim=4, pairing="interleaved"),
        topology="parallel",
        unembed_bias=True,
    )
    block = "transformer.h.0."
    ours = {
        "embed.W_E": theirs["transformer.wte.weight"],
        **norm("blocks.0.norm1", theirs, f"{block}ln_1"),
        **{
            f"blocks.0.attn.W_{x}": split(theirs[f"{block}attn.{x.lower()}_proj.weight"], 2)
            for x in "QKV"
        },
        "blocks.0.attn.W_O": joined(theirs[f"{block}attn.out_proj.weight"], 2),
        **linear("blocks.0.ffn", "in", theirs, f"{block}mlp.fc_in"),
        **linear("blocks.0.ffn", "out", theirs, f"{block}mlp.fc_out"),
        **norm("final_norm", theirs, "transformer.ln_f"),
        "unembed.W_U": theirs["lm_head.weight"].T,
        "unembed.b_U": theirs["lm_head.bias"],
    }
    return config, ours


def cohere2(theirs: Arrays) -> tuple[ModelConfig, Named]:
    """A block that turns within a window, and one that sees all and turns nothing; LayerNorm
    without bias, shared by both parts; a multiplier of the logits."""
    unscaled = RopeScaling()
    config = replace(
        stack(16, "gated", 12, "silu", vocab=23, tied=True),
        n_layers=2,
        attention=attention_config(16, 4, n_kv_heads=2),
        norm=NormConfig(eps=1e-3, bias=False, shared=True),
        position=position_config("rope", 4, theta=100.0, pairing="interleaved"),
        topology="parallel",
        logit_multiplier=0.4,
        layers=(
            LayerConfig(window=3, scale=0.5, theta=100.0, scaling=unscaled),
            LayerConfig(window=None, scale=0.5, theta=None, scaling=unscaled),
        ),
    )
    ours = {"embed.W_E": theirs["model.embed_tokens.weight"]}
    for layer in range(2):
        ours |= llama_attention(theirs, 4, 2, layer) | gated_ffn(theirs, layer)
        ours |= norm(f"blocks.{layer}.norm1", theirs, f"model.layers.{layer}.input_layernorm")
    return config, ours | norm("final_norm", theirs, "model.norm")


def nemotron(theirs: Arrays) -> tuple[ModelConfig, Named]:
    """relu², and a LayerNorm whose stored weight is added to 1."""
    config = replace(
        stack(16, "mlp", 12, "relu2", vocab=23),
        attention=attention_config(16, 2, n_kv_heads=1),
        ffn=ffn_config(16, "mlp", d_ff=12, activation="relu2", bias=NO_BIAS),
        norm=NormConfig(eps=1e-3, gain_offset=1.0),
        position=position_config("rope", 8, theta=100.0, rotary_dim=4),
    )
    ours = {
        **llama_like(theirs, 2, 1),
        **linear("blocks.0.ffn", "in", theirs, "model.layers.0.mlp.up_proj"),
        **linear("blocks.0.ffn", "out", theirs, "model.layers.0.mlp.down_proj"),
    }
    return config, ours


def sinusoidal(theirs: Arrays) -> tuple[ModelConfig, Named]:
    """Positions from sines and cosines: the table in the file is not read."""
    config = replace(
        stack(8, "mlp", 12, "gelu", vocab=23, tied=True),
        attention=attention_config(8, 2, mask="full", bias=everywhere()),
        norm=NormConfig(placement="post", eps=1e-12),
        position=position_config("sinusoidal", 4),
        final_norm=False,
        embed_norm=True,
        mlm_head=True,
        unembed_bias=True,
    )
    block = "distilbert.transformer.layer.0."
    ours = {
        "embed.W_E": theirs["distilbert.embeddings.word_embeddings.weight"],
        **norm("embed_norm", theirs, "distilbert.embeddings.LayerNorm"),
        **norm("blocks.0.norm1", theirs, f"{block}sa_layer_norm"),
        **norm("blocks.0.norm2", theirs, f"{block}output_layer_norm"),
        "blocks.0.attn.W_O": joined(theirs[f"{block}attention.out_lin.weight"], 2),
        "blocks.0.attn.b_O": theirs[f"{block}attention.out_lin.bias"],
        **linear("blocks.0.ffn", "in", theirs, f"{block}ffn.lin1"),
        **linear("blocks.0.ffn", "out", theirs, f"{block}ffn.lin2"),
        "mlm_head.W": theirs["vocab_transform.weight"].T,
        "mlm_head.b": theirs["vocab_transform.bias"],
        **norm("mlm_norm", theirs, "vocab_layer_norm"),
        "unembed.b_U": theirs["vocab_projector.bias"],
    }
    for x in "QKV":
        theirs_x = f"{block}attention.{x.lower()}_lin"
        ours[f"blocks.0.attn.W_{x}"] = split(theirs[f"{theirs_x}.weight"], 2)
        ours[f"blocks.0.attn.b_{x}"] = theirs[f"{theirs_x}.bias"].reshape(2, -1)
    return config, ours


def torch_decoder(before: bool, theirs: Arrays) -> tuple[ModelConfig, Named]:
    """torch's own decoder layer: cross-attention over rows, norms after or before each part."""
    config = replace(
        stack(8, "mlp", 12, "gelu" if before else "relu", vocab=None),
        attention=attention_config(8, 2, mask="full", bias=everywhere()),
        norm=NormConfig(placement="pre" if before else "post", eps=1e-3),
        final_norm=False,
        cross_attention=True,
    )
    ours = {
        **norm("blocks.0.norm1", theirs, "norm1"),
        **torch_attention("blocks.0.attn.", theirs, "self_attn."),
        **norm("blocks.0.norm_cross", theirs, "norm2"),
        **torch_attention("blocks.0.cross.", theirs, "multihead_attn."),
        **norm("blocks.0.norm2", theirs, "norm3"),
        **linear("blocks.0.ffn", "in", theirs, "linear1"),
        **linear("blocks.0.ffn", "out", theirs, "linear2"),
    }
    return config, ours


OPTIONS: Mapping[str, Callable[[Arrays], tuple[ModelConfig, Named]]] = {
    "option-bloom": bloom,
    "option-cohere2": cohere2,
    "option-gpt-oss": gpt_oss,
    "option-gptj": gptj,
    "option-granite": granite,
    "option-granite-moe-shared": granite_moe_shared,
    "option-nemotron": nemotron,
    "option-qwen2-moe": qwen2_moe,
    "option-sinusoidal": sinusoidal,
    "option-switch": switch,
    "option-torch-decoder-post-norm": partial(torch_decoder, False),
    "option-torch-decoder-pre-norm": partial(torch_decoder, True),
}
