"""Where each of our tensors lies in a GGUF file, by name: nearly the same for every architecture.

What a file lacks or has besides is seen from its names: Q, K and V together or apart, experts in
one tensor, in two, or each by itself.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from compute.checkpoints.gguf.layouts import (
    experts,
    half_of_experts,
    interleaved,
    rows_of_qkv,
    stream,
)
from compute.checkpoints.stored import (
    Layout,
    Stored,
    Table,
    as_is,
    by_table,
    each_expert,
    transposed,
)
from compute.config import AttentionConfig, ModelConfig


def _norm(ours: str, theirs: str) -> Table:
    return {f"{ours}.{part}": (f"{theirs}.{part}", as_is) for part in ("weight", "bias")}


def _product(ours: str, name: str, theirs: str) -> Table:
    return {
        f"{ours}W_{name}": (f"{theirs}.weight", transposed),
        f"{ours}b_{name}": (f"{theirs}.bias", as_is),
    }


_BLOCKS, _BLK = "blocks.{l}.", "blk.{l}."

_TABLE: Table = {
    "embed.W_E": ("token_embd.weight", as_is),
    "pos_embed.W_pos": ("position_embd.weight", as_is),
    "type_embed.W_type": ("token_types.weight", as_is),
    **_norm("embed_norm", "token_embd_norm"),
    **_norm(f"{_BLOCKS}norm1", f"{_BLK}attn_norm"),
    **_norm(f"{_BLOCKS}attn.q_norm", f"{_BLK}attn_q_norm"),
    **_norm(f"{_BLOCKS}attn.k_norm", f"{_BLK}attn_k_norm"),
    **_product(f"{_BLOCKS}attn.", "O", f"{_BLK}attn_output"),
    **_norm(f"{_BLOCKS}norm1_post", f"{_BLK}post_attention_norm"),
    **_norm(f"{_BLOCKS}norm2", f"{_BLK}ffn_norm"),
    **_product(f"{_BLOCKS}ffn.", "in", f"{_BLK}ffn_up"),
    **_product(f"{_BLOCKS}ffn.", "gate", f"{_BLK}ffn_gate"),
    **_product(f"{_BLOCKS}ffn.", "out", f"{_BLK}ffn_down"),
    **_norm(f"{_BLOCKS}norm2_post", f"{_BLK}post_ffw_norm"),
    **_norm("final_norm", "output_norm"),
    **_product("unembed.", "U", "output"),
}
POST_NORM: Table = {
    **_norm(f"{_BLOCKS}norm1", f"{_BLK}attn_output_norm"),
    **_norm(f"{_BLOCKS}norm2", f"{_BLK}layer_output_norm"),
}
"""BERT's norms, after each addition."""


def stored(
    config: ModelConfig, names: AbstractSet[str], *, turned: bool, other: Table | None
) -> Mapping[str, Stored]:
    """Where each tensor lies. turned: Q and K lie interleaved; other: names of an architecture."""
    table = {
        **_TABLE,
        **_query_key_value(config.attention, "blk.0.attn_qkv.weight" in names, turned),
        **(_experts(names) if config.ffn.kind == "moe" else {}),
        **(other or {}),
    }
    return by_table(config, table)


def _query_key_value(attention: AttentionConfig, together: bool, turned: bool) -> Table:
    table: dict[str, tuple[str, Layout]] = {}
    for which in "QKV":
        layout = interleaved(stream) if turned and which != "V" else stream
        if together:
            layout = rows_of_qkv(attention, which, layout)
        theirs = f"{_BLK}attn_qkv" if together else f"{_BLK}attn_{which.lower()}"
        table[f"{_BLOCKS}attn.W_{which}"] = (f"{theirs}.weight", layout)
        table[f"{_BLOCKS}attn.b_{which}"] = (f"{theirs}.bias", layout)
    return table


def _experts(names: AbstractSet[str]) -> Table:
    W_in, W_gate, W_out = (f"{_BLOCKS}ffn.W_{name}" for name in ("in", "gate", "out"))
    router: Table = {f"{_BLOCKS}ffn.W_router": (f"{_BLK}ffn_gate_inp.weight", transposed)}
    if "blk.0.ffn_gate.0.weight" in names:
        return {
            **router,
            W_in: (f"{_BLK}ffn_up.{{e}}.weight", each_expert(transposed)),
            W_gate: (f"{_BLK}ffn_gate.{{e}}.weight", each_expert(transposed)),
            W_out: (f"{_BLK}ffn_down.{{e}}.weight", each_expert(transposed)),
        }
    out: Table = {W_out: (f"{_BLK}ffn_down_exps.weight", experts)}
    if "blk.0.ffn_gate_up_exps.weight" in names:
        both = f"{_BLK}ffn_gate_up_exps.weight"
        halves: Table = {
            W_gate: (both, half_of_experts(upper=False)),
            W_in: (both, half_of_experts(upper=True)),
        }
        return {**router, **out, **halves}
    return {
        **router,
        **out,
        W_in: (f"{_BLK}ffn_up_exps.weight", experts),
        W_gate: (f"{_BLK}ffn_gate_exps.weight", experts),
    }


def _t5_stack(ours: str, theirs: str) -> Table:
    of_block, block = f"{ours}{_BLOCKS}", f"{theirs}.blk.{{l}}."
    return {
        f"{ours}rel_bias.W_rel": (f"{theirs}.blk.0.attn_rel_b.weight", as_is),
        **_norm(f"{of_block}norm1", f"{block}attn_norm"),
        **_t5_attention(f"{of_block}attn.", f"{block}attn_"),
        **_norm(f"{of_block}norm_cross", f"{block}cross_attn_norm"),
        **_t5_attention(f"{of_block}cross.", f"{block}cross_attn_"),
        **_norm(f"{of_block}norm2", f"{block}ffn_norm"),
        **_product(f"{of_block}ffn.", "in", f"{block}ffn_up"),
        **_product(f"{of_block}ffn.", "gate", f"{block}ffn_gate"),
        **_product(f"{of_block}ffn.", "out", f"{block}ffn_down"),
        **_norm(f"{ours}final_norm", f"{theirs}.output_norm"),
    }


def _t5_attention(ours: str, theirs: str) -> Table:
    return {f"{ours}W_{x}": (f"{theirs}{x.lower()}.weight", transposed) for x in "QKVO"}


T5: Table = {**_t5_stack("encoder.", "enc"), **_t5_stack("", "dec")}
"""T5's two stacks."""
