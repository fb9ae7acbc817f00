"""What a block is made of, as asked for: attention, ffn, norms."""

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from compute import config
from schemas.base import Asked, spread
from schemas.bounds import Count, Multiplier, Positive, Size

_ATTENTION = config.AttentionConfig()
_FFN = config.FfnConfig()
_NORM = config.NormConfig()


class AttentionBiasAsked(Asked):
    """Which of the four biases exist."""

    q: bool = Field(default=_ATTENTION.bias.q, description="b_Q (head, d_head)")
    k: bool = Field(default=_ATTENTION.bias.k, description="b_K (kv_head, d_head)")
    v: bool = Field(default=_ATTENTION.bias.v, description="b_V (kv_head, d_value)")
    o: bool = Field(default=_ATTENTION.bias.o, description="b_O (d_model)")


class FfnBiasAsked(Asked):
    """Which of the biases exist."""

    in_: bool | None = Field(
        default=None, alias="in", description="b_in (d_ff). Default: exists, but for experts."
    )
    gate: bool | None = Field(
        default=None,
        description="b_gate (d_ff), where there is a gate. Default: exists in a gated ffn, and in "
        "gated experts where b_in does.",
    )
    out: bool | None = Field(
        default=None, description="b_out (d_model). Default: exists, but for experts."
    )


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


class MlaAsked(Asked):
    """Latent attention, as in DeepSeek-V2. Sized, not run."""

    q_lora_rank: Size | None = Field(
        default=None, description="Queries are read from so many numbers. Default: the stream."
    )
    kv_lora_rank: Size | None = Field(
        default=None, description="Keys and values of all heads: from so many numbers. Needed."
    )
    d_nope: Size | None = Field(
        default=None, description="Coordinates of a key that each head has of its own. Needed."
    )
    d_rope: Size | None = Field(
        default=None, description="Coordinates of a key that turn, and all heads share. Needed."
    )

    def to_compute(self) -> config.MlaConfig:
        """The part resolved; what is needed is there."""
        return config.MlaConfig(
            q_lora_rank=self.q_lora_rank,
            kv_lora_rank=self.kv_lora_rank or 0,
            d_nope=self.d_nope or 0,
            d_rope=self.d_rope or 0,
        )


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
    scale: Multiplier | None = Field(
        default=None, description="Multiplies Q K^T (not a divisor). Default: 1 / sqrt(d_head)."
    )
    softcap: Positive | None = Field(
        default=None,
        description="c: a scaled score s becomes c · tanh(s / c), before bias and mask. "
        "Default: none.",
    )
    qk_norm: config.QkNorm = Field(
        default=_ATTENTION.qk_norm,
        description="Queries and keys are normalized before they turn: head by head, or full: all "
        "heads together. The norm is of the kind of norm.kind.",
    )
    sinks: bool = Field(
        default=_ATTENTION.sinks,
        description="Each head has a learned logit that joins its softmax and takes weight away.",
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
    mla: MlaAsked | None = Field(
        default=None,
        description="Latent attention: d_head is d_nope + d_rope, d_value by default d_nope. "
        "Sized, not run. Default: none.",
    )

    def to_compute(self, d_model: int) -> config.AttentionConfig:
        """The part resolved."""
        if self.kind == "none" or self.n_heads is None:
            return config.AttentionConfig(kind="none")
        return config.attention_config(
            d_model,
            self.n_heads,
            n_kv_heads=self.n_kv_heads,
            d_head=self.d_head,
            d_value=self.d_value,
            scale=self.scale,
            softcap=self.softcap,
            qk_norm=self.qk_norm,
            sinks=self.sinks,
            mask=self.mask,
            window=self.window,
            bias=config.AttentionBias(**self.bias.model_dump()),
            mla=None if self.mla is None else self.mla.to_compute(),
        )


class EncoderAttentionAsked(AttentionAsked):
    """Multi-head attention in an encoder, where every position sees all."""

    mask: config.MaskKind = Field(
        default="full",
        description="full: a position attends to all; causal: to itself and earlier ones.",
    )


class FfnAsked(Asked):
    """The feed-forward network of a block."""

    kind: config.FfnKind = Field(
        default=_FFN.kind,
        description="mlp: act(F W_in + b_in) W_out + b_out; "
        "gated: (act(F W_gate + b_gate) · (F W_in + b_in)) W_out + b_out; "
        "moe: a router sends each token to some of many experts; none.",
    )
    d_ff: Size | None = Field(
        default=None, description="Width f, of each expert too. Default: 4 · d_model."
    )
    activation: config.ActivationName = Field(
        default=_FFN.activation,
        description="gelu is the erf form, gelu_tanh its tanh form; "
        "quick_gelu is x · sigmoid(1.702 x); relu2 is max(x, 0)^2.",
    )
    bias: FfnBiases = Field(
        default=FfnBiasAsked(),
        description="true or false for all, or an object of in, gate, out. "
        "Default: b_in and b_out exist, and b_gate in a gated ffn; of experts none.",
    )
    n_experts: Size | None = Field(default=None, description="moe: experts e. Needed there.")
    top_k: Size | None = Field(
        default=None, description="moe: how many experts a token goes to. Needed there."
    )
    expert: config.ExpertKind = Field(
        default=_FFN.expert, description="moe: what an expert is, gated or mlp."
    )
    renormalize: bool = Field(
        default=_FFN.renormalize,
        description="moe: the weights are the softmax over the chosen logits; false: over all "
        "logits, so that the chosen weights sum to less than 1.",
    )
    router_bias: bool = Field(default=_FFN.router_bias, description="moe: b_router exists.")
    d_shared: Count = Field(
        default=_FFN.d_shared,
        description="moe: width u of one more expert that sees every token; 0: there is none.",
    )
    shared_gate: bool = Field(
        default=_FFN.shared_gate,
        description="moe: the shared expert's output is multiplied by sigmoid(F W_shared_weight).",
    )
    first_dense: Count = Field(
        default=_FFN.first_dense,
        description="moe: so many first blocks have a dense ffn in its place. Sized, not run.",
    )
    every: Size = Field(
        default=_FFN.every,
        description="moe: only each so many-th block has experts, the others a dense ffn. "
        "Sized, not run. Default: 1, all.",
    )
    d_dense: Size | None = Field(
        default=None,
        description="moe: width of the dense blocks. Default: 4 · d_model, where there are any.",
    )

    def to_compute(self, d_model: int) -> config.FfnConfig:
        """The part resolved."""
        if self.kind == "none":
            return config.FfnConfig(kind="none")
        return config.ffn_config(
            d_model,
            self.kind,
            d_ff=self.d_ff,
            activation=self.activation,
            bias=self._bias(),
            n_experts=self.n_experts or 0,
            top_k=self.top_k or 0,
            expert=self.expert,
            renormalize=self.renormalize,
            router_bias=self.router_bias,
            d_shared=self.d_shared,
            shared_gate=self.shared_gate,
            first_dense=self.first_dense,
            every=self.every,
            d_dense=self.d_dense,
        )

    def _bias(self) -> config.FfnBias:
        default, said = config.default_ffn_bias(self.kind), self.bias
        in_ = default.in_ if said.in_ is None else said.in_
        gate = default.gate or (self.kind == "moe" and self.expert == "gated" and in_)
        return config.FfnBias(
            in_=in_,
            gate=gate if said.gate is None else said.gate,
            out=default.out if said.out is None else said.out,
        )


class NormAsked(Asked):
    """The norms of a block, and of the stack's end."""

    kind: config.NormKind = Field(default=_NORM.kind, description="layernorm, rmsnorm or none")
    placement: config.Placement = Field(
        default=_NORM.placement,
        description="pre: before each sublayer; post: after each addition; output: on what a "
        "sublayer gives, before it is added; sandwich: pre and output together.",
    )
    eps: Annotated[float, Field(ge=1e-30, le=1)] = Field(
        default=_NORM.eps, description="Added to the variance (or mean square), inside the root."
    )
    gain_offset: Annotated[float, Field(ge=-10, le=10)] = Field(
        default=_NORM.gain_offset, description="Added to the stored weight: 1 for gains of 1 + w."
    )
    bias: bool = Field(default=_NORM.bias, description="layernorm: its bias exists.")
    shared: bool = Field(
        default=_NORM.shared,
        description="One norm, norm1, feeds both sublayers of a parallel block.",
    )
    gain: bool = Field(
        default=_NORM.gain,
        description="The norms have gains; false: they hold no numbers. Sized, not run.",
    )

    def to_compute(self) -> config.NormConfig:
        """The part resolved."""
        return config.NormConfig(**self.model_dump())
