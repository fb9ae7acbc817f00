"""A resolved config as answered. A part that is off has its kind alone."""

from typing import NotRequired

from typing_extensions import TypedDict

from compute import config


class AttentionBiasAnswer(TypedDict):
    """Which of b_Q, b_K, b_V, b_O exist."""

    q: bool
    k: bool
    v: bool
    o: bool


FfnBiasAnswer = TypedDict("FfnBiasAnswer", {"in": bool, "gate": bool, "out": bool})
"""Which of b_in, b_gate, b_out exist."""


class AttentionAnswer(TypedDict):
    """Attention; with kind = none nothing else."""

    kind: config.AttentionKind
    n_heads: NotRequired[int]
    n_kv_heads: NotRequired[int]
    d_head: NotRequired[int]
    d_value: NotRequired[int]
    scale: NotRequired[float]
    mask: NotRequired[config.MaskKind]
    window: NotRequired[int | None]
    bias: NotRequired[AttentionBiasAnswer]


class FfnAnswer(TypedDict):
    """The ffn; with kind = none nothing else."""

    kind: config.FfnKind
    d_ff: NotRequired[int]
    activation: NotRequired[config.ActivationName]
    bias: NotRequired[FfnBiasAnswer]


class NormAnswer(TypedDict):
    """The norms; with kind = none nothing else."""

    kind: config.NormKind
    placement: NotRequired[config.Placement]
    eps: NotRequired[float]
    gain_offset: NotRequired[float]


class PositionAnswer(TypedDict):
    """How position enters, with what its kind needs."""

    kind: config.PositionKind
    n_positions: NotRequired[int]
    theta: NotRequired[float]
    rotary_dim: NotRequired[int]
    pairing: NotRequired[config.Pairing]
    alibi_rule: NotRequired[config.AlibiRule]


class ConfigAnswer(TypedDict):
    """A config resolved: every field that applies, nothing optional."""

    d_model: int
    n_layers: int
    attention: AttentionAnswer
    ffn: FfnAnswer
    norm: NormAnswer
    position: PositionAnswer
    vocab: int | None
    tied: bool
    unembed_bias: bool
    final_norm: bool
