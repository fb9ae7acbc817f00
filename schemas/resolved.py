"""A resolved config as answered. A part that is off has its kind alone."""

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from compute import config


class AttentionBiasAnswer(TypedDict):
    """Which of b_Q, b_K, b_V, b_O exist."""

    q: Annotated[bool, Field(description="b_Q exists")]
    k: Annotated[bool, Field(description="b_K exists")]
    v: Annotated[bool, Field(description="b_V exists")]
    o: Annotated[bool, Field(description="b_O exists")]


FfnBiasAnswer = TypedDict(
    "FfnBiasAnswer",
    {
        "in": Annotated[bool, Field(description="b_in exists")],
        "gate": Annotated[bool, Field(description="b_gate exists")],
        "out": Annotated[bool, Field(description="b_out exists")],
    },
)
"""Which of b_in, b_gate, b_out exist."""


class AttentionAnswer(TypedDict):
    """Attention; with kind = none nothing else."""

    kind: Annotated[config.AttentionKind, Field(description="softmax, or none")]
    n_heads: NotRequired[Annotated[int, Field(description="Query heads.")]]
    n_kv_heads: NotRequired[Annotated[int, Field(description="Key/value heads.")]]
    d_head: NotRequired[Annotated[int, Field(description="Width of queries and keys.")]]
    d_value: NotRequired[Annotated[int, Field(description="Width of values.")]]
    scale: NotRequired[Annotated[float, Field(description="Multiplies Q K^T.")]]
    mask: NotRequired[Annotated[config.MaskKind, Field(description="causal or full")]]
    window: NotRequired[Annotated[int | None, Field(description="|n - m| < window; null: none.")]]
    bias: NotRequired[Annotated[AttentionBiasAnswer, Field(description="Which biases exist.")]]


class FfnAnswer(TypedDict):
    """The ffn; with kind = none nothing else."""

    kind: Annotated[config.FfnKind, Field(description="mlp, gated or none")]
    d_ff: NotRequired[Annotated[int, Field(description="Width of the expansion.")]]
    activation: NotRequired[
        Annotated[config.ActivationName, Field(description="What follows the expansion.")]
    ]
    bias: NotRequired[Annotated[FfnBiasAnswer, Field(description="Which biases exist.")]]


class NormAnswer(TypedDict):
    """The norms; with kind = none nothing else."""

    kind: Annotated[config.NormKind, Field(description="layernorm, rmsnorm or none")]
    placement: NotRequired[Annotated[config.Placement, Field(description="pre or post")]]
    eps: NotRequired[Annotated[float, Field(description="Inside the root.")]]
    gain_offset: NotRequired[Annotated[float, Field(description="Added to the stored weight.")]]


class PositionAnswer(TypedDict):
    """How position enters, with what its kind needs."""

    kind: Annotated[config.PositionKind, Field(description="How position enters.")]
    n_positions: NotRequired[Annotated[int, Field(description="learned: rows of the table.")]]
    theta: NotRequired[Annotated[float, Field(description="rope: base of the frequencies.")]]
    rotary_dim: NotRequired[Annotated[int, Field(description="rope: coordinates that turn.")]]
    pairing: NotRequired[
        Annotated[config.Pairing, Field(description="rope: which coordinates pair.")]
    ]
    alibi_rule: NotRequired[
        Annotated[config.AlibiRule, Field(description="alibi: the rule of the slopes.")]
    ]


class ConfigAnswer(TypedDict):
    """A config resolved: every field that applies, nothing optional."""

    d_model: Annotated[int, Field(description="Width of the stream.")]
    n_layers: Annotated[int, Field(description="Blocks.")]
    attention: Annotated[AttentionAnswer, Field(description="Attention.")]
    ffn: Annotated[FfnAnswer, Field(description="The feed-forward network.")]
    norm: Annotated[NormAnswer, Field(description="The norms.")]
    position: Annotated[PositionAnswer, Field(description="How position enters.")]
    vocab: Annotated[int | None, Field(description="Tokens; null: no embedding and no readout.")]
    tied: Annotated[bool, Field(description="The readout is the transposed embedding.")]
    unembed_bias: Annotated[bool, Field(description="The readout has a bias.")]
    final_norm: Annotated[bool, Field(description="A norm follows the last block.")]
