"""A model's config as asked for: optional fields, bounds, defaults of the article's block."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from compute import config, config_rules
from compute.config import ModelConfig
from compute.config_json import applying_fields
from compute.errors import ConfigError, Fault, refuse_if
from schemas.base import Asked, spread

_BIG = 1 << 20
_ATTENTION = config.AttentionConfig()
_FFN = config.FfnConfig()
_NORM = config.NormConfig()
_POSITION = config.PositionConfig()

Size = Annotated[int, Field(ge=1, le=_BIG)]


class AttentionBiasAsked(Asked):
    """Which of the four biases exist."""

    q: bool = Field(default=_ATTENTION.bias.q, description="b_Q (head, d_head)")
    k: bool = Field(default=_ATTENTION.bias.k, description="b_K (kv_head, d_head)")
    v: bool = Field(default=_ATTENTION.bias.v, description="b_V (kv_head, d_value)")
    o: bool = Field(default=_ATTENTION.bias.o, description="b_O (d_model)")


class FfnBiasAsked(Asked):
    """Which of the biases exist."""

    in_: bool = Field(default=_FFN.bias.in_, alias="in", description="b_in (d_ff)")
    gate: bool | None = Field(
        default=None, description="b_gate (d_ff), gated only. Default: exists there."
    )
    out: bool = Field(default=_FFN.bias.out, description="b_out (d_model)")


def _flags(*names: str) -> WithJsonSchema:
    properties = {name: {"type": "boolean"} for name in names}
    flags = {"type": "object", "properties": properties, "additionalProperties": False}
    return WithJsonSchema({"anyOf": [{"type": "boolean"}, flags]})


def _all_or_none(raw: object) -> object:
    """true: each that the kind has; false: none."""
    if not isinstance(raw, bool):
        return raw
    every = {"in": True, "gate": None, "out": True}
    return every if raw else dict.fromkeys(every, False)


AttentionBiases = Annotated[
    AttentionBiasAsked,
    BeforeValidator(spread("q", "k", "v", "o")),
    _flags("q", "k", "v", "o"),
]
FfnBiases = Annotated[FfnBiasAsked, BeforeValidator(_all_or_none), _flags("in", "gate", "out")]


class AttentionAsked(Asked):
    """Multi-head attention; heads may share keys and values in groups."""

    kind: config.AttentionKind = Field(
        default=_ATTENTION.kind, description="softmax, or none: a block with an ffn alone"
    )
    n_heads: Size | None = Field(default=None, description="Query heads h. Needed with softmax.")
    n_kv_heads: Size | None = Field(
        default=None, description="Key/value heads g, a divisor of n_heads. Default: n_heads."
    )
    d_head: Size | None = Field(
        default=None,
        description="Width k of queries and keys, free of d_model / n_heads, which is the default.",
    )
    d_value: Size | None = Field(
        default=None, description="Width v of values and of a head's mixture. Default: d_head."
    )
    scale: Annotated[float, Field(ge=-1e6, le=1e6)] | None = Field(
        default=None, description="Multiplies Q K^T (not a divisor). Default: 1 / sqrt(d_head)."
    )
    mask: config.MaskKind = Field(
        default=_ATTENTION.mask,
        description="causal: a position attends to itself and earlier ones; full: to all.",
    )
    window: Size | None = Field(
        default=None,
        description="Attend only where |n - m| < window; the query itself counts. Default: none.",
    )
    bias: AttentionBiases = Field(
        default=AttentionBiasAsked(),
        description="true or false for all four, or an object of q, k, v, o. Default: none exist.",
    )


class FfnAsked(Asked):
    """The feed-forward network of a block."""

    kind: config.FfnKind = Field(
        default=_FFN.kind,
        description="mlp: act(F W_in + b_in) W_out + b_out; "
        "gated: (act(F W_gate + b_gate) · (F W_in + b_in)) W_out + b_out; none.",
    )
    d_ff: Size | None = Field(default=None, description="Width f. Default: 4 · d_model.")
    activation: config.ActivationName = Field(
        default=_FFN.activation,
        description="gelu is the erf form, gelu_tanh its tanh form; "
        "quick_gelu is x · sigmoid(1.702 x).",
    )
    bias: FfnBiases = Field(
        default=FfnBiasAsked(),
        description="true or false for all, or an object of in, gate, out. "
        "Default: b_in and b_out exist, and b_gate in a gated ffn.",
    )


class NormAsked(Asked):
    """The norms of a block, and of the stack's end."""

    kind: config.NormKind = Field(default=_NORM.kind, description="layernorm, rmsnorm or none")
    placement: config.Placement = Field(
        default=_NORM.placement,
        description="pre: before each sublayer; post: after each addition.",
    )
    eps: Annotated[float, Field(ge=1e-30, le=1)] = Field(
        default=_NORM.eps, description="Added to the variance (or mean square), inside the root."
    )
    gain_offset: Annotated[float, Field(ge=-10, le=10)] = Field(
        default=_NORM.gain_offset, description="Added to the stored weight: 1 for gains of 1 + w."
    )


class PositionAsked(Asked):
    """How position enters."""

    kind: config.PositionKind = Field(
        default=_POSITION.kind,
        description="none; sinusoidal or learned (added once, below the stack); "
        "rope (turns queries and keys); alibi (added to scores).",
    )
    n_positions: Size | None = Field(
        default=None, description="learned: rows of pos_embed.W_pos. Needed there."
    )
    theta: Annotated[float, Field(ge=1e-6, le=1e12)] | None = Field(
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
    alibi_rule: config.AlibiRule | None = Field(
        default=None,
        description="alibi: slopes for head counts that are no power of two. Default: bloom.",
    )


class ConfigAsked(Asked):
    """A stack of equal blocks. Everything but d_model and attention.n_heads may be left out.

    Beside a preset, which brings both, these are changes of its config.
    """

    d_model: Size | None = Field(
        default=None, description="Width d of the stream. Needed without a preset."
    )
    n_layers: Size = Field(default=1, description="Blocks in the stack.")
    attention: AttentionAsked = Field(
        default=AttentionAsked(), description="Give n_heads at least."
    )
    ffn: FfnAsked = Field(default=FfnAsked(), description="Default: mlp, d_ff = 4 · d_model, gelu.")
    norm: NormAsked = Field(default=NormAsked(), description="Default: layernorm, pre.")
    position: PositionAsked = Field(default=PositionAsked(), description="Default: none.")
    vocab: Size | None = Field(
        default=None,
        description="Tokens V: gives the model an embedding and a readout. Default: neither.",
    )
    tied: bool = Field(default=False, description="The readout is the transposed embedding.")
    unembed_bias: bool = Field(default=False, description="The readout has a bias b_U.")
    final_norm: bool | None = Field(
        default=None,
        description="A norm after the last block. "
        "Default: true for a pre-norm model with a vocab, else false.",
    )

    def missing(self) -> Iterator[Fault]:
        """A fault for each field that is needed and not there."""
        if self.d_model is None:
            detail = "d_model is needed: the width of the stream."
            yield Fault(code="missing", detail=detail, place=("d_model",))
        if self.attention.kind == "softmax" and self.attention.n_heads is None:
            detail = "n_heads is needed: how many heads attention has."
            yield Fault(code="missing", detail=detail, place=("attention", "n_heads"))

    def to_compute(self) -> ModelConfig:
        """The config resolved, nothing optional; a ConfigError with every broken rule."""
        refuse_if(ConfigError, [*self.missing(), *_unused_faults(self)])
        d_model = self.d_model or 0
        attention = _attention(self.attention, d_model)
        norm = config.NormConfig(**self.norm.model_dump())
        final_norm = config.default_final_norm(norm, self.vocab)
        return config_rules.check(
            ModelConfig(
                d_model=d_model,
                n_layers=self.n_layers,
                attention=attention,
                ffn=_ffn(self.ffn, d_model),
                norm=norm,
                position=_position(self.position, attention.d_head),
                vocab=self.vocab,
                tied=self.tied,
                unembed_bias=self.unembed_bias,
                final_norm=final_norm if self.final_norm is None else self.final_norm,
            )
        )


def _unused_faults(asked: ConfigAsked) -> Iterator[Fault]:
    """A fault for each field that its part's kind does not have."""
    parts: dict[str, tuple[AttentionAsked | FfnAsked | NormAsked | PositionAsked, type]] = {
        "attention": (asked.attention, config.AttentionConfig),
        "ffn": (asked.ffn, config.FfnConfig),
        "norm": (asked.norm, config.NormConfig),
        "position": (asked.position, config.PositionConfig),
    }
    for part, (given, resolved) in parts.items():
        for name in sorted(given.model_fields_set - set(applying_fields(resolved, given.kind))):
            detail = f"{part}.kind = {given.kind} has no {name}; leave it out."
            yield Fault(code="config_rule", detail=detail, place=(part, name))


def _attention(attention: AttentionAsked, d_model: int) -> config.AttentionConfig:
    if attention.kind == "none" or attention.n_heads is None:
        return config.AttentionConfig(kind="none")
    return config.attention_config(
        d_model,
        attention.n_heads,
        n_kv_heads=attention.n_kv_heads,
        d_head=attention.d_head,
        d_value=attention.d_value,
        scale=attention.scale,
        mask=attention.mask,
        window=attention.window,
        bias=config.AttentionBias(**attention.bias.model_dump()),
    )


def _ffn(ffn: FfnAsked, d_model: int) -> config.FfnConfig:
    if ffn.kind == "none":
        return config.FfnConfig(kind="none")
    gate = ffn.kind == "gated" if ffn.bias.gate is None else ffn.bias.gate
    return config.ffn_config(
        d_model,
        ffn.kind,
        d_ff=ffn.d_ff,
        activation=ffn.activation,
        bias=config.FfnBias(in_=ffn.bias.in_, gate=gate, out=ffn.bias.out),
    )


def _position(asked: PositionAsked, d_head: int) -> config.PositionConfig:
    return config.position_config(d_head=d_head, **asked.model_dump(exclude_none=True))
