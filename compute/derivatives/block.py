"""The Steps of a block, beside `compute.block`: where norms stand, and how sublayers are added.

A sublayer is told by its names: attention's are norm1, attn_out, attn_sum and norm1_post. Each
arrangement takes one from the stream it reads to the stream it leaves.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from compute.block_weights import NormWeights
from compute.config import ModelConfig
from compute.derivatives.attention import attention, cross_attention
from compute.derivatives.ffn import feed_forward
from compute.derivatives.norms import NORMS
from compute.derivatives.steps import Here, Step, Steps, Values, added
from compute.types import Array

MEMORY = "memory"
"""In a block, what cross-attention reads."""


@dataclass(frozen=True, slots=True)
class Sublayer:
    """Names of its stages, and its Steps from what it reads to its raw output of a given name."""

    norm: str
    raw: str
    out: str
    sum: str
    post: str
    leaves: str
    compute: Callable[[str, str], Steps]


def block(config: ModelConfig) -> Steps:
    """resid_pre -> resid_post."""
    sublayers = sublayers_of(config)
    if config.topology == "parallel":
        return (yield from parallel(config, sublayers))
    stream = "resid_pre"
    for sublayer in sublayers:
        stream = yield from PLACEMENTS[config.norm.placement](config, sublayer, stream)
    return stream


def sublayers_of(config: ModelConfig) -> list[Sublayer]:
    """Those a config has, in order; the last one leaves resid_post."""
    attends, feeds = config.attention.kind != "none", config.ffn.kind != "none"
    made = [
        Sublayer(*_ATTENTION, "resid_mid" if feeds else "resid_post", partial(attention, config))
        if attends
        else None,
        Sublayer(*_CROSS, "resid_cross", partial(_crossed, config))
        if config.cross_attention
        else None,
        Sublayer(*_FFN, "resid_post", partial(feed_forward, config.ffn)) if feeds else None,
    ]
    return [sublayer for sublayer in made if sublayer is not None]


_ATTENTION = ("norm1", "attn.out_raw", "attn_out", "attn_sum", "norm1_post")
_CROSS = ("norm_cross", "cross.out_raw", "cross_out", "cross_sum", "")
_FFN = ("norm2", "ffn.out_raw", "ffn_out", "ffn_sum", "norm2_post")


def _crossed(config: ModelConfig, C: str, name: str) -> Steps:
    return cross_attention(config, C, MEMORY, name)


def pre(config: ModelConfig, of: Sublayer, X: str) -> Steps:
    """Y = X + F(LN(X))."""
    normed = yield from norm(config, of.norm, X)
    out = yield from update(config, of, normed)
    return (yield from added(of.leaves, X, out))


def post(config: ModelConfig, of: Sublayer, X: str) -> Steps:
    """Y = LN(X + F(X))."""
    out = yield from update(config, of, X)
    total = yield from added(of.sum, X, out)
    normed = yield from norm(config, of.norm, total)
    return (yield from added(of.leaves, normed))


def sandwich(config: ModelConfig, of: Sublayer, X: str) -> Steps:
    """Y = X + LN'(F(LN(X)))."""
    normed = yield from norm(config, of.norm, X)
    out = yield from normed_update(config, of, normed)
    return (yield from added(of.leaves, X, out))


def output(config: ModelConfig, of: Sublayer, X: str) -> Steps:
    """Y = X + LN'(F(X))."""
    out = yield from normed_update(config, of, X)
    return (yield from added(of.leaves, X, out))


PLACEMENTS: Mapping[str, Callable[[ModelConfig, Sublayer, str], Steps]] = {
    "pre": pre,
    "post": post,
    "sandwich": sandwich,
    "output": output,
}
"""By `norm.placement`."""


def parallel(config: ModelConfig, sublayers: Sequence[Sublayer]) -> Steps:
    """Z = X + MHA(LN1(X)) + FFN(LN2(X)); with a shared norm both read LN1(X)."""
    attends, feeds = sublayers
    norm1 = yield from norm(config, attends.norm, "resid_pre")
    attn_out = yield from update(config, attends, norm1)
    shared = config.norm.shared
    norm2 = norm1 if shared else (yield from norm(config, feeds.norm, "resid_pre"))
    ffn_out = yield from update(config, feeds, norm2)
    return (yield from added("resid_post", "resid_pre", attn_out, ffn_out))


def norm(config: ModelConfig, name: str, x: str) -> Steps:
    """LN(x), or x where there is none."""
    return (yield from NORMS[config.norm.kind](name, x, partial(_weights, name)))


def _weights(name: str, here: Here) -> NormWeights:
    found: NormWeights = getattr(here.block, name)
    return found


def update(config: ModelConfig, of: Sublayer, read: str) -> Steps:
    """Δ = multiplier · F(read): with a multiplier of 1 the raw output itself."""
    if config.residual_multiplier == 1.0:
        return (yield from of.compute(read, of.out))
    raw = yield from of.compute(read, of.raw)
    return (yield from multiplied(of.out, raw))


def normed_update(config: ModelConfig, of: Sublayer, read: str) -> Steps:
    """Δ = multiplier · LN'(F(read))."""
    raw = yield from of.compute(read, of.raw)
    normed = yield from norm(config, of.post, raw)
    return (yield from multiplied(of.out, normed))


def multiplied(name: str, x: str) -> Steps:
    """name = residual_multiplier · x."""
    yield Step(name, (x,), (), _multiplied)
    return name


def _multiplied(c: Array, values: Values, here: Here) -> tuple[Array, ...]:
    return (here.setting.residual_multiplier * c,)
