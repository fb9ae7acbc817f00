"""The block: two updates to a running representation, as the article writes it.

An equation yields (stage, value) and goes on with what is sent back. X, Y, Z are (..., n, d).
Another arrangement is another generator beside these, chosen by the config.
"""

from collections.abc import Callable, Mapping

from compute.attention import attention
from compute.setting import Setting
from compute.types import Array, Equations
from compute.weights import BlockWeights

Block = Callable[[Array, BlockWeights, Setting], Equations]


def pre_norm_block(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Y = X + MHA(LN1(X)),  Z = Y + FFN(LN2(Y))."""
    resid_pre = yield "resid_pre", X
    norm1 = yield from setting.norm("norm1", resid_pre, w.norm1)
    attn_out = yield "attn_out", (yield from attention(norm1, w.attention, setting))
    resid_mid = yield "resid_mid", resid_pre + attn_out
    norm2 = yield from setting.norm("norm2", resid_mid, w.norm2)
    ffn_out = yield "ffn_out", (yield from setting.feed_forward(norm2, w.ffn))
    return (yield "resid_post", resid_mid + ffn_out)


def post_norm_block(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Y = LN1(X + MHA(X)),  Z = LN2(Y + FFN(Y))."""
    resid_pre = yield "resid_pre", X
    attn_out = yield "attn_out", (yield from attention(resid_pre, w.attention, setting))
    attn_sum = yield "attn_sum", resid_pre + attn_out
    norm1 = yield from setting.norm("norm1", attn_sum, w.norm1)
    resid_mid = yield "resid_mid", norm1
    ffn_out = yield "ffn_out", (yield from setting.feed_forward(resid_mid, w.ffn))
    ffn_sum = yield "ffn_sum", resid_mid + ffn_out
    norm2 = yield from setting.norm("norm2", ffn_sum, w.norm2)
    return (yield "resid_post", norm2)


def pre_norm_attention(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Z = X + MHA(LN1(X)): a block without an FFN."""
    resid_pre = yield "resid_pre", X
    norm1 = yield from setting.norm("norm1", resid_pre, w.norm1)
    attn_out = yield "attn_out", (yield from attention(norm1, w.attention, setting))
    return (yield "resid_post", resid_pre + attn_out)


def post_norm_attention(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Z = LN1(X + MHA(X)): a block without an FFN."""
    resid_pre = yield "resid_pre", X
    attn_out = yield "attn_out", (yield from attention(resid_pre, w.attention, setting))
    attn_sum = yield "attn_sum", resid_pre + attn_out
    norm1 = yield from setting.norm("norm1", attn_sum, w.norm1)
    return (yield "resid_post", norm1)


def pre_norm_ffn(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Z = X + FFN(LN2(X)): a block without attention."""
    resid_pre = yield "resid_pre", X
    norm2 = yield from setting.norm("norm2", resid_pre, w.norm2)
    ffn_out = yield "ffn_out", (yield from setting.feed_forward(norm2, w.ffn))
    return (yield "resid_post", resid_pre + ffn_out)


def post_norm_ffn(X: Array, w: BlockWeights, setting: Setting) -> Equations:
    """Z = LN2(X + FFN(X)): a block without attention."""
    resid_pre = yield "resid_pre", X
    ffn_out = yield "ffn_out", (yield from setting.feed_forward(resid_pre, w.ffn))
    ffn_sum = yield "ffn_sum", resid_pre + ffn_out
    norm2 = yield from setting.norm("norm2", ffn_sum, w.norm2)
    return (yield "resid_post", norm2)


BLOCKS: Mapping[tuple[str, str], Block] = {
    ("pre", "both"): pre_norm_block,
    ("post", "both"): post_norm_block,
    ("pre", "attention"): pre_norm_attention,
    ("post", "attention"): post_norm_attention,
    ("pre", "ffn"): pre_norm_ffn,
    ("post", "ffn"): post_norm_ffn,
}
"""(norm placement, which sublayers there are) -> the block's equation."""
