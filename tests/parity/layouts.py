"""How other models' tensors lie, written out by hand: what the options' models share."""

import numpy as np

from compute.config import (
    AttentionBias,
    FfnBias,
    ModelConfig,
    NormConfig,
    PositionConfig,
    attention_config,
    ffn_config,
)
from parity.references import Array, Arrays

Named = dict[str, Array]
NO_BIAS = FfnBias(in_=False, gate=False, out=False)


def stack(
    d: int, kind: str, f: int, activation: str, *, vocab: int | None, tied: bool = False
) -> ModelConfig:
    """One block with RMSNorm before its parts, and without positions."""
    bias = None if kind == "mlp" else NO_BIAS
    return ModelConfig(
        d_model=d,
        n_layers=1,
        attention=attention_config(d, 1),
        ffn=ffn_config(d, kind, d_ff=f, activation=activation, bias=bias),  # type: ignore[arg-type]
        norm=NormConfig(kind="rmsnorm", eps=1e-3),
        position=PositionConfig(),
        vocab=vocab,
        tied=tied,
        unembed_bias=False,
        final_norm=True,
    )


def everywhere() -> AttentionBias:
    """All four biases."""
    return AttentionBias(q=True, k=True, v=True, o=True)


def split(matrix: Array, heads: int) -> Array:
    """(h k, d) -> (h, d, k)."""
    rows, d = matrix.shape
    return matrix.reshape(heads, rows // heads, d).swapaxes(1, 2)


def joined(matrix: Array, heads: int) -> Array:
    """(d, h v) -> (h, v, d)."""
    d, columns = matrix.shape
    return matrix.T.reshape(heads, columns // heads, d)


def norm(ours: str, theirs: Arrays, name: str) -> Named:
    """A gain, and a bias where there is one."""
    return {
        f"{ours}.{x}": theirs[f"{name}.{x}"] for x in ("weight", "bias") if f"{name}.{x}" in theirs
    }


def linear(ours: str, which: str, theirs: Arrays, name: str) -> Named:
    """W_in and b_in from a Linear (out, in), or W_out and b_out."""
    made = {f"{ours}.W_{which}": theirs[f"{name}.weight"].T}
    if f"{name}.bias" in theirs:
        made[f"{ours}.b_{which}"] = theirs[f"{name}.bias"]
    return made


def llama_like(theirs: Arrays, heads: int, kv_heads: int) -> Named:
    """All of one block under Llama's names but its ffn."""
    return {
        "embed.W_E": theirs["model.embed_tokens.weight"],
        **norm("blocks.0.norm1", theirs, "model.layers.0.input_layernorm"),
        **llama_attention(theirs, heads, kv_heads, 0),
        **norm("blocks.0.norm2", theirs, "model.layers.0.post_attention_layernorm"),
        **norm("final_norm", theirs, "model.norm"),
        "unembed.W_U": theirs["lm_head.weight"].T,
    }


def llama_attention(theirs: Arrays, heads: int, kv_heads: int, layer: int) -> Named:
    """The attention of a block under Llama's names, its biases of q, k and v where there are."""
    ours, part = f"blocks.{layer}.attn.", f"model.layers.{layer}.self_attn."
    made = {f"{ours}W_O": joined(theirs[f"{part}o_proj.weight"], heads)}
    for x, count in (("Q", heads), ("K", kv_heads), ("V", kv_heads)):
        name = f"{part}{x.lower()}_proj"
        made[f"{ours}W_{x}"] = split(theirs[f"{name}.weight"], count)
        if f"{name}.bias" in theirs:
            made[f"{ours}b_{x}"] = theirs[f"{name}.bias"].reshape(count, -1)
    return made


def gated_ffn(theirs: Arrays, layer: int = 0) -> Named:
    """The ffn of a block under Llama's names."""
    part = f"model.layers.{layer}.mlp."
    return {
        f"blocks.{layer}.ffn.W_{own}": theirs[f"{part}{name}_proj.weight"].T
        for own, name in (("gate", "gate"), ("in", "up"), ("out", "down"))
    }


def torch_attention(ours: str, theirs: Arrays, part: str) -> Named:
    """torch's MultiheadAttention of two heads: q, k and v one below the other."""
    made = {
        f"{ours}W_O": joined(theirs[f"{part}out_proj.weight"], 2),
        f"{ours}b_O": theirs[f"{part}out_proj.bias"],
    }
    matrices = np.split(theirs[f"{part}in_proj_weight"], 3)
    biases = np.split(theirs[f"{part}in_proj_bias"], 3)
    for x, matrix, bias in zip("QKV", matrices, biases, strict=True):
        made |= {f"{ours}W_{x}": split(matrix, 2), f"{ours}b_{x}": bias.reshape(2, -1)}
    return made


def t5_attention(ours: str, theirs: Arrays, part: str) -> Named:
    """T5's attention of two heads."""
    made = {f"{ours}W_{x}": split(theirs[f"{part}{x.lower()}.weight"], 2) for x in "QKV"}
    return made | {f"{ours}W_O": joined(theirs[f"{part}o.weight"], 2)}


def t5_block(ours: str, theirs: Arrays, stack_of: str, ffn: int) -> Named:
    """A T5 stack of one block with three experts; `ffn` is the ffn's number in the block."""
    block = f"{stack_of}block.0.layer."
    experts = f"{block}{ffn}.mlp."
    bias = f"{block}0.SelfAttention.relative_attention_bias.weight"
    made = {
        f"{ours}rel_bias.W_rel": theirs[bias],
        **norm(f"{ours}blocks.0.norm1", theirs, f"{block}0.layer_norm"),
        **t5_attention(f"{ours}blocks.0.attn.", theirs, f"{block}0.SelfAttention."),
        **norm(f"{ours}blocks.0.norm2", theirs, f"{block}{ffn}.layer_norm"),
        f"{ours}blocks.0.ffn.W_router": theirs[f"{experts}router.classifier.weight"].T,
        **norm(f"{ours}final_norm", theirs, f"{stack_of}final_layer_norm"),
    }
    for own, name in (("in", "wi"), ("out", "wo")):
        each = [theirs[f"{experts}experts.expert_{e}.{name}.weight"].T for e in range(3)]
        made[f"{ours}blocks.0.ffn.W_{own}"] = np.stack(each)
    return made
