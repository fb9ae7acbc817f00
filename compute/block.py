"""The block: two updates to a running representation, as the article writes it.

An equation yields (stage, value) and goes on with what is sent back. X, Y, Z are (..., n, d).
Another arrangement is another generator beside these, chosen by the config.
"""

from collections.abc import Callable, Mapping

from compute.attention import attention, cross_attention
from compute.block_weights import BlockWeights
from compute.config import ModelConfig
from compute.setting import Setting
from compute.types import Array, Equations

Block = Callable[[Array, BlockWeights, Setting], Equations]


def pre_norm_block(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Y = X + MHA(LN1(X)),  Z = Y + FFN(LN2(Y))."""
    resid_pre = yield "resid_pre", X
    norm1 = yield from setting.norm("norm1", resid_pre, w.norm1)
    attn_out = yield from attention_update(norm1, w, setting)
    resid_mid = yield "resid_mid", resid_pre + attn_out
    norm2 = yield from setting.norm("norm2", resid_mid, w.norm2)
    ffn_out = yield from ffn_update(norm2, w, setting)
    return (yield "resid_post", resid_mid + ffn_out)


def post_norm_block(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Y = LN1(X + MHA(X)),  Z = LN2(Y + FFN(Y))."""
    resid_pre = yield "resid_pre", X
    attn_out = yield from attention_update(resid_pre, w, setting)
    attn_sum = yield "attn_sum", resid_pre + attn_out
    resid_mid = yield "resid_mid", (yield from setting.norm("norm1", attn_sum, w.norm1))
    ffn_out = yield from ffn_update(resid_mid, w, setting)
    ffn_sum = yield "ffn_sum", resid_mid + ffn_out
    norm2 = yield from setting.norm("norm2", ffn_sum, w.norm2)
    return (yield "resid_post", norm2)


def sandwich_norm_block(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Y = X + LN1'(MHA(LN1(X))),  Z = Y + LN2'(FFN(LN2(Y))). Gemma 2, arXiv:2408.00118."""
    resid_pre = yield "resid_pre", X
    norm1 = yield from setting.norm("norm1", resid_pre, w.norm1)
    attn_out = yield from normed_attention(norm1, w, setting)
    resid_mid = yield "resid_mid", resid_pre + attn_out
    norm2 = yield from setting.norm("norm2", resid_mid, w.norm2)
    ffn_out = yield from normed_ffn(norm2, w, setting)
    return (yield "resid_post", resid_mid + ffn_out)


def output_norm_block(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Y = X + LN1'(MHA(X)),  Z = Y + LN2'(FFN(Y)). OLMo 2, arXiv:2501.00656, section 3.2."""
    resid_pre = yield "resid_pre", X
    attn_out = yield from normed_attention(resid_pre, w, setting)
    resid_mid = yield "resid_mid", resid_pre + attn_out
    ffn_out = yield from normed_ffn(resid_mid, w, setting)
    return (yield "resid_post", resid_mid + ffn_out)


def parallel_block(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Z = X + MHA(LN1(X)) + FFN(LN2(X)): both read the same stream. GPT-NeoX, arXiv:2204.06745."""
    resid_pre = yield "resid_pre", X
    norm1 = yield from setting.norm("norm1", resid_pre, w.norm1)
    attn_out = yield from attention_update(norm1, w, setting)
    norm2 = yield from setting.norm("norm2", resid_pre, w.norm2)
    ffn_out = yield from ffn_update(norm2, w, setting)
    return (yield "resid_post", resid_pre + attn_out + ffn_out)


def shared_norm_parallel_block(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Z = X + MHA(LN1(X)) + FFN(LN1(X)): one norm feeds both. GPT-J, Phi."""
    resid_pre = yield "resid_pre", X
    norm1 = yield from setting.norm("norm1", resid_pre, w.norm1)
    attn_out = yield from attention_update(norm1, w, setting)
    ffn_out = yield from ffn_update(norm1, w, setting)
    return (yield "resid_post", resid_pre + attn_out + ffn_out)


def pre_norm_cross_block(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Y = X + MHA(LN1(X)),  C = Y + Cross(LNc(Y), memory),  Z = C + FFN(LN2(C))."""
    resid_pre = yield "resid_pre", X
    norm1 = yield from setting.norm("norm1", resid_pre, w.norm1)
    attn_out = yield from attention_update(norm1, w, setting)
    resid_mid = yield "resid_mid", resid_pre + attn_out
    norm_cross = yield from setting.norm("norm_cross", resid_mid, w.norm_cross)
    cross_out = yield from cross_update(norm_cross, w, setting)
    resid_cross = yield "resid_cross", resid_mid + cross_out
    norm2 = yield from setting.norm("norm2", resid_cross, w.norm2)
    ffn_out = yield from ffn_update(norm2, w, setting)
    return (yield "resid_post", resid_cross + ffn_out)


def post_norm_cross_block(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Y = LN1(X + MHA(X)),  C = LNc(Y + Cross(Y, memory)),  Z = LN2(C + FFN(C))."""
    resid_pre = yield "resid_pre", X
    attn_out = yield from attention_update(resid_pre, w, setting)
    attn_sum = yield "attn_sum", resid_pre + attn_out
    resid_mid = yield "resid_mid", (yield from setting.norm("norm1", attn_sum, w.norm1))
    cross_out = yield from cross_update(resid_mid, w, setting)
    cross_sum = yield "cross_sum", resid_mid + cross_out
    norm_cross = yield from setting.norm("norm_cross", cross_sum, w.norm_cross)
    resid_cross = yield "resid_cross", norm_cross
    ffn_out = yield from ffn_update(resid_cross, w, setting)
    ffn_sum = yield "ffn_sum", resid_cross + ffn_out
    norm2 = yield from setting.norm("norm2", ffn_sum, w.norm2)
    return (yield "resid_post", norm2)


def pre_norm_attention(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Z = X + MHA(LN1(X)): a block without an FFN."""
    resid_pre = yield "resid_pre", X
    norm1 = yield from setting.norm("norm1", resid_pre, w.norm1)
    attn_out = yield from attention_update(norm1, w, setting)
    return (yield "resid_post", resid_pre + attn_out)


def post_norm_attention(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Z = LN1(X + MHA(X)): a block without an FFN."""
    resid_pre = yield "resid_pre", X
    attn_out = yield from attention_update(resid_pre, w, setting)
    attn_sum = yield "attn_sum", resid_pre + attn_out
    norm1 = yield from setting.norm("norm1", attn_sum, w.norm1)
    return (yield "resid_post", norm1)


def pre_norm_ffn(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Z = X + FFN(LN2(X)): a block without attention."""
    resid_pre = yield "resid_pre", X
    norm2 = yield from setting.norm("norm2", resid_pre, w.norm2)
    ffn_out = yield from ffn_update(norm2, w, setting)
    return (yield "resid_post", resid_pre + ffn_out)


def post_norm_ffn(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Z = LN2(X + FFN(X)): a block without attention."""
    resid_pre = yield "resid_pre", X
    ffn_out = yield from ffn_update(resid_pre, w, setting)
    ffn_sum = yield "ffn_sum", resid_pre + ffn_out
    norm2 = yield from setting.norm("norm2", ffn_sum, w.norm2)
    return (yield "resid_post", norm2)


def sandwich_norm_attention(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Z = X + LN1'(MHA(LN1(X))): a block without an FFN."""
    resid_pre = yield "resid_pre", X
    norm1 = yield from setting.norm("norm1", resid_pre, w.norm1)
    attn_out = yield from normed_attention(norm1, w, setting)
    return (yield "resid_post", resid_pre + attn_out)


def sandwich_norm_ffn(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Z = X + LN2'(FFN(LN2(X))): a block without attention."""
    resid_pre = yield "resid_pre", X
    norm2 = yield from setting.norm("norm2", resid_pre, w.norm2)
    ffn_out = yield from normed_ffn(norm2, w, setting)
    return (yield "resid_post", resid_pre + ffn_out)


def output_norm_attention(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Z = X + LN1'(MHA(X)): a block without an FFN."""
    resid_pre = yield "resid_pre", X
    attn_out = yield from normed_attention(resid_pre, w, setting)
    return (yield "resid_post", resid_pre + attn_out)


def output_norm_ffn(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Z = X + LN2'(FFN(X)): a block without attention."""
    resid_pre = yield "resid_pre", X
    ffn_out = yield from normed_ffn(resid_pre, w, setting)
    return (yield "resid_post", resid_pre + ffn_out)


def attention_update(U: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Δ_attn = multiplier · MHA(U): what attention adds."""
    raw = yield from attention(U, w.attention, setting)
    return (yield from setting.update("attn.out_raw", "attn_out", raw))


def cross_update(C: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Δ_cross = multiplier · Cross(C, memory): what cross-attention adds."""
    raw = yield from cross_attention(C, w.cross, setting)
    return (yield from setting.update("cross.out_raw", "cross_out", raw))


def ffn_update(F: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Δ_ffn = multiplier · FFN(F): what the FFN adds."""
    raw = yield from setting.feed_forward(F, w.ffn)
    return (yield from setting.update("ffn.out_raw", "ffn_out", raw))


def normed_attention(U: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Δ_attn = multiplier · LN1'(MHA(U)): normalized before it is added."""
    raw = yield "attn.out_raw", (yield from attention(U, w.attention, setting))
    normed = yield from setting.norm("norm1_post", raw, w.norm1_post)
    return (yield "attn_out", setting.residual_multiplier * normed)


def normed_ffn(F: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Δ_ffn = multiplier · LN2'(FFN(F)): normalized before it is added."""
    raw = yield "ffn.out_raw", (yield from setting.feed_forward(F, w.ffn))
    normed = yield from setting.norm("norm2_post", raw, w.norm2_post)
    return (yield "ffn_out", setting.residual_multiplier * normed)


BLOCKS: Mapping[tuple[str, str], Block] = {
    ("pre", "both"): pre_norm_block,
    ("post", "both"): post_norm_block,
    ("sandwich", "both"): sandwich_norm_block,
    ("output", "both"): output_norm_block,
    ("parallel", "both"): parallel_block,
    ("parallel, shared norm", "both"): shared_norm_parallel_block,
    ("pre", "cross"): pre_norm_cross_block,
    ("post", "cross"): post_norm_cross_block,
    ("pre", "attention"): pre_norm_attention,
    ("post", "attention"): post_norm_attention,
    ("sandwich", "attention"): sandwich_norm_attention,
    ("output", "attention"): output_norm_attention,
    ("pre", "ffn"): pre_norm_ffn,
    ("post", "ffn"): post_norm_ffn,
    ("sandwich", "ffn"): sandwich_norm_ffn,
    ("output", "ffn"): output_norm_ffn,
}
"""(where norms stand, which sublayers there are) -> the block's equation."""


def block_for(config: ModelConfig) -> Block:
    """The equation of a config's blocks."""
    return BLOCKS[_arrangement(config), _sublayers(config)]


def _arrangement(config: ModelConfig) -> str:
    if config.topology == "parallel":
        return "parallel, shared norm" if config.norm.shared else "parallel"
    return config.norm.placement


def _sublayers(config: ModelConfig) -> str:
    if config.attention.kind == "none":
        return "ffn"
    if config.ffn.kind == "none":
        return "attention"
    return "cross" if config.cross_attention else "both"
