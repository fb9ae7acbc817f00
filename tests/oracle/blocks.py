"""A transformer block: two updates to a running representation, or three with a memory."""

from dataclasses import dataclass

from oracle import ffns, heads, norms
from oracle.examples import Example, Memory
from oracle.functions import Array, Config, Stages, Weights
from oracle.heads import Update


@dataclass(frozen=True, slots=True)
class Sublayer:
    """One update: what it is called, its norm, the stream after it if another follows."""

    name: str
    norm: str
    stream_after: str


@dataclass(frozen=True, slots=True)
class Block:
    """A block's own config, its weights without their prefix, and what it reads beside X."""

    config: Config
    w: Weights
    one: Example
    memory: Memory | None

    @property
    def sublayers(self) -> list[Sublayer]:
        """Those that there are, in order."""
        found = []
        if self.config["attention"]["kind"] != "none":
            found.append(Sublayer("attn", "norm1", "resid_mid"))
        if self.config.get("cross_attention", False):
            found.append(Sublayer("cross", "norm_cross", "resid_cross"))
        if self.config["ffn"]["kind"] != "none":
            found.append(Sublayer("ffn", "norm2", "resid_post"))
        return found


def block(
    config: Config, w: Weights, resid_pre: Array, one: Example, memory: Memory | None
) -> Stages:
    """One block by its topology and the placement of its norms."""
    of = Block(config, w, one, memory)
    if config.get("topology", "sequential") == "parallel":
        return parallel_block(of, resid_pre)
    if config["norm"].get("placement") == "post":
        return post_norm_block(of, resid_pre)
    return pre_norm_block(of, resid_pre)


def pre_norm_block(of: Block, resid_pre: Array) -> Stages:
    """Y = X + attention(LN1 X); C = Y + cross(LNc Y, memory); Z = C + ffn(LN2 C).

    Sandwich: each sublayer's output passes a norm of its own before it is added. Output: that
    norm alone, and the sublayers read the stream itself.
    """
    stages = {"resid_pre": resid_pre}
    stream = resid_pre
    for sublayer in of.sublayers:
        read = stream
        if of.config["norm"].get("placement") != "output":
            stages |= norms.norm(sublayer.norm, of.config["norm"], of.w, stream)
            read = stages.get(f"{sublayer.norm}.out", stream)
        stages |= update(of, sublayer, read)
        stream = stream + stages[f"{sublayer.name}_out"]
        is_last = sublayer == of.sublayers[-1]
        stages["resid_post" if is_last else sublayer.stream_after] = stream
    return stages


def post_norm_block(of: Block, resid_pre: Array) -> Stages:
    """Y = LN1(X + attention(X)); C = LNc(Y + cross(Y, memory)); Z = LN2(C + ffn(C))."""
    stages = {"resid_pre": resid_pre}
    stream = resid_pre
    for sublayer in of.sublayers:
        stages |= update(of, sublayer, stream)
        total = stream + stages[f"{sublayer.name}_out"]
        stages[f"{sublayer.name}_sum"] = total
        stages |= norms.norm(sublayer.norm, of.config["norm"], of.w, total)
        stream = stages[f"{sublayer.norm}.out"]
        is_last = sublayer == of.sublayers[-1]
        stages["resid_post" if is_last else sublayer.stream_after] = stream
    return stages


def parallel_block(of: Block, resid_pre: Array) -> Stages:
    """Z = X + attention(LN1 X) + ffn(LN2 X), or LN1 X for both."""
    stages = {"resid_pre": resid_pre}
    for sublayer in of.sublayers:
        name = "norm1" if of.config["norm"].get("shared", False) else sublayer.norm
        if f"{name}.out" not in stages:
            stages |= norms.norm(name, of.config["norm"], of.w, resid_pre)
        stages |= update(of, sublayer, stages.get(f"{name}.out", resid_pre))
    stages["resid_post"] = resid_pre + stages["attn_out"] + stages["ffn_out"]
    return stages


def update(of: Block, sublayer: Sublayer, read: Array) -> Stages:
    """A sublayer's stages, to what is added to the stream: multiplier · norm(raw)."""
    stages, raw = computed(of, sublayer, read)
    multiplier = of.config.get("residual_multiplier", 1.0)
    is_normed = of.config["norm"].get("placement") in ("sandwich", "output")
    added = raw
    if is_normed or multiplier != 1.0:
        stages[f"{sublayer.name}.out_raw"] = raw
    if is_normed:
        after = f"{sublayer.norm}_post"
        stages |= norms.norm(after, of.config["norm"], of.w, raw)
        added = stages[f"{after}.out"]
    return stages | {f"{sublayer.name}_out": multiplier * added}


def computed(of: Block, sublayer: Sublayer, read: Array) -> Update:
    """A sublayer's stages and its raw output."""
    if sublayer.name == "attn":
        return heads.attention(of.config, of.w, read, of.one)
    if sublayer.name == "ffn":
        return ffns.feed_forward(of.config["ffn"], of.w, read)
    assert of.memory is not None
    return heads.cross_attention(of.config, of.w, read, of.memory)
