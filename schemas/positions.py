"""How position enters, and what single blocks have of their own, as asked for."""

from typing import Annotated

from pydantic import Field

from compute import config
from schemas.base import Asked
from schemas.bounds import Multiplier, Positive, Size, Theta

_POSITION = config.PositionConfig()


class RopeScalingAsked(Asked):
    """How RoPE's frequencies are stretched beyond the positions a model was trained on."""

    kind: config.ScalingKind = Field(
        default=_POSITION.scaling.kind,
        description="none; linear: all angles divided by factor; dynamic: theta grows with the "
        "length (NTK); yarn and llama3: slow pairs are stretched, fast ones are not.",
    )
    factor: Annotated[float, Field(ge=1, le=1e6)] | None = Field(
        default=None, description="How many times longer. Needed, but with none."
    )
    original_positions: Size | None = Field(
        default=None, description="dynamic, yarn, llama3: positions trained on. Needed there."
    )
    low_freq_factor: Positive | None = Field(
        default=None,
        description="llama3: pairs that turn less than so often in original_positions are "
        "stretched whole. Default: 1.",
    )
    high_freq_factor: Positive | None = Field(
        default=None,
        description="llama3: pairs that turn more often than this are left as they are. "
        "Default: 4.",
    )
    beta_fast: Positive | None = Field(
        default=None,
        description="yarn: pairs that turn more than so often in original_positions stay. "
        "Default: 32.",
    )
    beta_slow: Positive | None = Field(
        default=None,
        description="yarn: pairs that turn less often than this are stretched whole. Default: 1.",
    )
    attention_factor: Positive | None = Field(
        default=None,
        description="yarn: multiplies cosines and sines. Default: 0.1 ln(factor) + 1.",
    )

    def to_compute(self) -> config.RopeScaling:
        """The part resolved."""
        said = self.model_dump(exclude_none=True)
        if self.kind == "yarn" and self.factor is not None:
            said.setdefault("attention_factor", config.yarn_attention_factor(self.factor))
        return config.RopeScaling(**said)


class PositionAsked(Asked):
    """How position enters."""

    kind: config.PositionKind = Field(
        default=_POSITION.kind,
        description="none; sinusoidal or learned (added once, below the stack); "
        "rope (turns queries and keys); alibi (added to scores); "
        "t5_bias (a learned number for each distance, added to scores).",
    )
    n_positions: Size | None = Field(
        default=None, description="learned: rows of pos_embed.W_pos. Needed there."
    )
    theta: Theta | None = Field(
        default=None,
        description="rope: pair i turns by theta^(-2i / rotary_dim) radians a position. "
        "Default: 10000.",
    )
    rotary_dim: Size | None = Field(
        default=None, description="rope: how many coordinates of a head turn. Default: d_head."
    )
    pairing: config.Pairing | None = Field(
        default=None,
        description="rope: half pairs i with i + rotary_dim / 2; interleaved pairs 2i with 2i + 1. "
        "Default: half.",
    )
    scaling: RopeScalingAsked = Field(
        default=RopeScalingAsked(), description="rope: how its frequencies are stretched."
    )
    alibi_rule: config.AlibiRule | None = Field(
        default=None,
        description="alibi: slopes for head counts that are no power of two. Default: bloom.",
    )
    n_buckets: Size | None = Field(
        default=None, description="t5_bias: rows r of rel_bias.W_rel. Default: 32."
    )
    max_distance: Size | None = Field(
        default=None,
        description="t5_bias: from this distance on all share a bucket. Default: 128.",
    )
    bidirectional: bool | None = Field(
        default=None,
        description="t5_bias: earlier and later keys have buckets of their own. "
        "Default: where attention.mask is full.",
    )

    def to_compute(self, attention: config.AttentionConfig) -> config.PositionConfig:
        """The part resolved."""
        said = self.model_dump(exclude_none=True, exclude={"scaling"})
        said.setdefault("bidirectional", self.kind == "t5_bias" and attention.mask == "full")
        turning = attention.d_head if attention.mla is None else attention.mla.d_rope
        return config.position_config(d_head=turning, scaling=self.scaling.to_compute(), **said)


class LayerAsked(Asked):
    """What one block has of its own. A field left out means what the config says."""

    window: Size | None = Field(
        default=None, description="As attention.window; null: no window in this block."
    )
    scale: Multiplier | None = Field(default=None, description="As attention.scale.")
    theta: Theta | None = Field(
        default=None, description="As position.theta; null: this block turns nothing."
    )
    scaling: RopeScalingAsked | None = Field(default=None, description="As position.scaling.")

    def to_compute(self, alike: config.LayerConfig) -> config.LayerConfig:
        """The entry resolved; `alike`: the entry of a block that has nothing of its own."""
        said = self.model_fields_set
        return config.LayerConfig(
            window=self.window if "window" in said else alike.window,
            scale=alike.scale if self.scale is None else self.scale,
            theta=self.theta if "theta" in said else alike.theta,
            scaling=alike.scaling if self.scaling is None else self.scaling.to_compute(),
        )
