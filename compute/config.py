"""A model's config as resolved: frozen, checked, nothing optional.

Static defaults stand here as field defaults; `attention_config`, `ffn_config` and
`position_config` derive the others (d_head = d_model / n_heads, d_ff = 4 d_model, ...).
A part that is switched off (`kind = none`) keeps zeros that nobody reads.
"""

from dataclasses import dataclass
from typing import Literal

AttentionKind = Literal["softmax", "none"]
MaskKind = Literal["causal", "full"]
FfnKind = Literal["mlp", "gated", "none"]
ActivationName = Literal["gelu", "gelu_tanh", "quick_gelu", "relu", "silu", "identity"]
NormKind = Literal["layernorm", "rmsnorm", "none"]
Placement = Literal["pre", "post"]
PositionKind = Literal["none", "sinusoidal", "learned", "rope", "alibi"]
Pairing = Literal["half", "interleaved"]
AlibiRule = Literal["bloom", "geometric"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionBias:
    """Which of b_Q, b_K, b_V, b_O exist."""

    q: bool = False
    k: bool = False
    v: bool = False
    o: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FfnBias:
    """Which of b_in, b_gate, b_out exist (b_gate only in a gated FFN)."""

    in_: bool = True
    gate: bool = False
    out: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionConfig:
    """Softmax attention over scores; `scale` multiplies Q K^T; `window` counts the query itself."""

    kind: AttentionKind = "softmax"
    n_heads: int = 0
    n_kv_heads: int = 0
    d_head: int = 0
    d_value: int = 0
    scale: float = 0.0
    mask: MaskKind = "causal"
    window: int | None = None
    bias: AttentionBias = AttentionBias()


@dataclass(frozen=True, slots=True, kw_only=True)
class FfnConfig:
    """A two-matrix MLP, act(F W_in + b_in) W_out + b_out, or a gated one."""

    kind: FfnKind = "mlp"
    d_ff: int = 0
    activation: ActivationName = "gelu"
    bias: FfnBias = FfnBias()


@dataclass(frozen=True, slots=True, kw_only=True)
class NormConfig:
    """LayerNorm or RMSNorm, before each sublayer or after each addition.

    `gain_offset` is added to the stored weight: 0, or 1 where the stored weight is w of (1 + w).
    """

    kind: NormKind = "layernorm"
    placement: Placement = "pre"
    eps: float = 1e-5
    gain_offset: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionConfig:
    """How position enters: added to the stream once, rotating Q and K, or added to scores."""

    kind: PositionKind = "none"
    n_positions: int = 0
    theta: float = 10000.0
    rotary_dim: int = 0
    pairing: Pairing = "half"
    alibi_rule: AlibiRule = "bloom"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """A stack of `n_layers` equal blocks, with embedding and readout where `vocab` is given."""

    d_model: int
    n_layers: int
    attention: AttentionConfig
    ffn: FfnConfig
    norm: NormConfig
    position: PositionConfig
    vocab: int | None
    tied: bool
    unembed_bias: bool
    final_norm: bool


def attention_config(
    d_model: int,
    n_heads: int,
    *,
    n_kv_heads: int | None = None,
    d_head: int | None = None,
    d_value: int | None = None,
    scale: float | None = None,
    mask: MaskKind = "causal",
    window: int | None = None,
    bias: AttentionBias = AttentionBias(),
) -> AttentionConfig:
    """n_kv_heads = n_heads, d_head = d_model / n_heads = d_value, scale = 1 / sqrt(d_head)."""
    default_width = 0 if d_model % n_heads else d_model // n_heads  # 0: config_rules refuses it
    width = default_width if d_head is None else d_head
    return AttentionConfig(
        n_heads=n_heads,
        n_kv_heads=n_heads if n_kv_heads is None else n_kv_heads,
        d_head=width,
        d_value=width if d_value is None else d_value,
        scale=max(width, 1) ** -0.5 if scale is None else scale,
        mask=mask,
        window=window,
        bias=bias,
    )


def ffn_config(
    d_model: int,
    kind: FfnKind,
    *,
    d_ff: int | None = None,
    activation: ActivationName = "gelu",
    bias: FfnBias | None = None,
) -> FfnConfig:
    """d_ff = 4 d_model; b_in and b_out exist, and b_gate where there is a gate."""
    return FfnConfig(
        kind=kind,
        d_ff=4 * d_model if d_ff is None else d_ff,
        activation=activation,
        bias=FfnBias(gate=kind == "gated") if bias is None else bias,
    )


def position_config(
    kind: PositionKind,
    d_head: int,
    *,
    n_positions: int = 0,
    theta: float = 10000.0,
    rotary_dim: int | None = None,
    pairing: Pairing = "half",
    alibi_rule: AlibiRule = "bloom",
) -> PositionConfig:
    """rotary_dim = d_head: the whole head turns unless a narrower width is asked for."""
    return PositionConfig(
        kind=kind,
        n_positions=n_positions,
        theta=theta,
        rotary_dim=d_head if rotary_dim is None else rotary_dim,
        pairing=pairing,
        alibi_rule=alibi_rule,
    )


def default_final_norm(norm: NormConfig, vocab: int | None) -> bool:
    """A pre-norm stack normalizes once more before its vocabulary readout."""
    return vocab is not None and norm.kind != "none" and norm.placement == "pre"
