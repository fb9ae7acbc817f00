"""A model's config as resolved: frozen, checked, nothing optional.

Static defaults stand here as field defaults; `attention_config`, `ffn_config` and
`position_config` derive the others (d_head = d_model / n_heads, d_ff = 4 d_model, ...).
A part that is switched off (`kind = none`) keeps zeros that nobody reads.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import log
from typing import Literal, Union

AttentionKind = Literal["softmax", "none"]
MaskKind = Literal["causal", "full"]
QkNorm = Literal["none", "head", "full"]
FfnKind = Literal["mlp", "gated", "moe", "none"]
ExpertKind = Literal["gated", "mlp"]
ActivationName = Literal["gelu", "gelu_tanh", "quick_gelu", "relu", "relu2", "silu", "identity"]
NormKind = Literal["layernorm", "rmsnorm", "none"]
Placement = Literal["pre", "post", "sandwich", "output"]
PositionKind = Literal["none", "sinusoidal", "learned", "rope", "alibi", "t5_bias"]
Pairing = Literal["half", "interleaved"]
ScalingKind = Literal["none", "linear", "dynamic", "yarn", "llama3"]
AlibiRule = Literal["bloom", "geometric"]
Topology = Literal["sequential", "parallel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionBias:
    """Which of b_Q, b_K, b_V, b_O exist."""

    q: bool = False
    k: bool = False
    v: bool = False
    o: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FfnBias:
    """Which of b_in, b_gate, b_out exist (b_gate only where there is a gate)."""

    in_: bool = True
    gate: bool = False
    out: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MlaConfig:
    """Latent attention: keys and values of all heads are read from `kv_lora_rank` numbers.

    Queries come from `q_lora_rank` numbers, or from the stream where it is None. A head's d_head is
    `d_nope` + `d_rope`; the `d_rope` coordinates of a key turn, and all heads share them. Sized,
    not run. DeepSeek-V2, arXiv:2405.04434, section 2.1.
    """

    q_lora_rank: int | None
    kv_lora_rank: int
    d_nope: int
    d_rope: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionConfig:
    """Softmax attention over scores; `scale` multiplies Q K^T; `window` counts the query itself.

    `softcap` c: scaled scores become c · tanh(s / c). `qk_norm`: queries and keys are normalized,
    head by head or over all heads together. `sinks`: each head has one more logit in its softmax.
    `mla`: keys and values are latent.
    """

    kind: AttentionKind = "softmax"
    n_heads: int = 0
    n_kv_heads: int = 0
    d_head: int = 0
    d_value: int = 0
    scale: float = 0.0
    softcap: float | None = None
    qk_norm: QkNorm = "none"
    sinks: bool = False
    mask: MaskKind = "causal"
    window: int | None = None
    bias: AttentionBias = AttentionBias()
    mla: MlaConfig | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FfnConfig:
    """A two-matrix MLP, act(F W_in + b_in) W_out + b_out, a gated one, or a mixture of experts.

    A mixture: each token goes to the `top_k` of `n_experts` experts with the largest router
    logits. `renormalize`: their weights are the softmax over the chosen logits, else over all.
    `d_shared` > 0: one more expert of that width sees every token; `shared_gate` weighs it.
    The first `first_dense` blocks, and of the others all but each `every`-th, have a dense ffn of
    width `d_dense` in its place (0: there are none). Sized, not run.
    """

    kind: FfnKind = "mlp"
    d_ff: int = 0
    activation: ActivationName = "gelu"
    bias: FfnBias = FfnBias()
    n_experts: int = 0
    top_k: int = 0
    expert: ExpertKind = "gated"
    renormalize: bool = True
    router_bias: bool = False
    d_shared: int = 0
    shared_gate: bool = False
    first_dense: int = 0
    every: int = 1
    d_dense: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NormConfig:
    """LayerNorm or RMSNorm, and where: `placement`.

    pre: before each sublayer. post: after each addition. output: on each sublayer's output,
    before it is added. sandwich: pre and output together. `gain_offset` is added to the stored
    weight: 0, or 1 where the stored weight is w of (1 + w). `bias`: a LayerNorm's bias exists.
    `shared`: in a parallel block one norm feeds both sublayers. `gain` false: the norms hold no
    numbers, neither gain nor bias. Sized, not run.
    """

    kind: NormKind = "layernorm"
    placement: Placement = "pre"
    eps: float = 1e-5
    gain_offset: float = 0.0
    bias: bool = True
    shared: bool = False
    gain: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeScaling:
    """How RoPE's frequencies are stretched beyond the positions a model was trained on.

    `original_positions` is what it was trained on; `attention_factor` multiplies cosines and
    sines (yarn).
    """

    kind: ScalingKind = "none"
    factor: float = 1.0
    original_positions: int = 0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionConfig:
    """How position enters: added to the stream once, rotating Q and K, or added to scores."""

    kind: PositionKind = "none"
    n_positions: int = 0
    theta: float = 10000.0
    rotary_dim: int = 0
    pairing: Pairing = "half"
    scaling: RopeScaling = RopeScaling()
    alibi_rule: AlibiRule = "bloom"
    n_buckets: int = 32
    max_distance: int = 128
    bidirectional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerConfig:
    """What one block has of its own. `theta` is None where the block turns nothing."""

    window: int | None
    scale: float
    theta: float | None
    scaling: RopeScaling


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchesConfig:
    """An image cut into square patches, a position each: one product makes a patch a row.

    `class_token`: one more learned row comes first. Sized, not run. ViT, arXiv:2010.11929.
    """

    image_size: int
    patch_size: int
    channels: int = 3
    bias: bool = True
    class_token: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraConfig:
    """A part that no other field says: its name, and how many numbers it holds."""

    name: str
    parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """A stack of `n_layers` blocks, with an embedding where `vocab` is given, and a readout there.

    `readout` false: the embedding has none, and the model ends with its stream.
    `layers` is empty where all blocks are alike, else it has an entry for each. With
    `cross_attention` each block also attends to a memory: the output of `encoder`, a stack of its
    own that shares the embedding, or rows that the request brings.

    Sized, not run: `vocab_padded_to` rows of the embedding and the readout; `d_embed`, a narrower
    width of what is below the stack, and a product up to d_model; `distinct_blocks`, so many blocks
    that share their weights in turn; `patches`. Beside the run: `pooler` (a product and a bias over
    the first row), `classes` (a readout of so many classes), `extras`.
    """

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
    topology: Topology = "sequential"
    residual_multiplier: float = 1.0
    cross_attention: bool = False
    embed_multiplier: float = 1.0
    embed_norm: bool = False
    token_types: int = 0
    readout: bool = True
    mlm_head: bool = False
    logit_multiplier: float = 1.0
    logit_softcap: float | None = None
    layers: tuple[LayerConfig, ...] = ()
    encoder: Union["ModelConfig", None] = None
    vocab_padded_to: int | None = None
    d_embed: int | None = None
    embed_projection_bias: bool = True
    distinct_blocks: int | None = None
    patches: PatchesConfig | None = None
    pooler: bool = False
    classes: int = 0
    extras: tuple[ExtraConfig, ...] = ()

    def __hash__(self) -> int:
        """Of some fields alone: caches ask for it often, and a deep stack lists every block."""
        sizes = (self.d_model, self.n_layers, self.vocab, len(self.layers))
        heads = (self.attention.n_heads, self.attention.n_kv_heads, self.attention.d_head)
        return hash((*sizes, *heads, self.ffn.kind, self.ffn.d_ff, self.position.n_positions))


def reads_out(config: ModelConfig) -> bool:
    """Whether the model has logits."""
    return config.vocab is not None and config.readout


@lru_cache(maxsize=1024)
def block_config(config: ModelConfig, layer: int) -> ModelConfig:
    """The config of one block: the stack's, with what the block has of its own."""
    if not config.layers:
        return config
    own = config.layers[layer]
    position = config.position
    if position.kind == "rope":
        turned = replace(position, theta=own.theta or 0.0, scaling=own.scaling)
        position = PositionConfig() if own.theta is None else turned
    attention = replace(config.attention, window=own.window, scale=own.scale)
    return replace(config, attention=attention, position=position, layers=())


def layer_config(config: ModelConfig) -> LayerConfig:
    """What a block has that says nothing of its own."""
    position = config.position
    return LayerConfig(
        window=config.attention.window,
        scale=config.attention.scale,
        theta=position.theta if position.kind == "rope" else None,
        scaling=position.scaling,
    )


def attention_config(  # noqa: PLR0913 - a keyword for each field
    d_model: int,
    n_heads: int,
    *,
    n_kv_heads: int | None = None,
    d_head: int | None = None,
    d_value: int | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    qk_norm: QkNorm = "none",
    sinks: bool = False,
    mask: MaskKind = "causal",
    window: int | None = None,
    bias: AttentionBias = AttentionBias(),
    mla: MlaConfig | None = None,
) -> AttentionConfig:
    """n_kv_heads = n_heads, d_head = d_model / n_heads = d_value, scale = 1 / sqrt(d_head).

    With mla d_head = d_nope + d_rope, and d_value = d_nope.
    """
    default_width = 0 if d_model % n_heads else d_model // n_heads  # 0: config_rules refuses it
    if mla is not None:
        default_width = mla.d_nope + mla.d_rope
        d_value = mla.d_nope if d_value is None else d_value
    width = default_width if d_head is None else d_head
    return AttentionConfig(
        n_heads=n_heads,
        n_kv_heads=n_heads if n_kv_heads is None else n_kv_heads,
        d_head=width,
        d_value=width if d_value is None else d_value,
        scale=max(width, 1) ** -0.5 if scale is None else scale,
        softcap=softcap,
        qk_norm=qk_norm,
        sinks=sinks,
        mask=mask,
        window=window,
        bias=bias,
        mla=mla,
    )


def ffn_config(  # noqa: PLR0913 - a keyword for each field
    d_model: int,
    kind: FfnKind,
    *,
    d_ff: int | None = None,
    activation: ActivationName = "gelu",
    bias: FfnBias | None = None,
    n_experts: int = 0,
    top_k: int = 0,
    expert: ExpertKind = "gated",
    renormalize: bool = True,
    router_bias: bool = False,
    d_shared: int = 0,
    shared_gate: bool = False,
    first_dense: int = 0,
    every: int = 1,
    d_dense: int | None = None,
) -> FfnConfig:
    """d_ff = 4 d_model; b_in and b_out exist, and b_gate where there is a gate; of experts none.

    d_dense = 4 d_model where some blocks of a mixture are dense.
    """
    default_dense = 4 * d_model if first_dense or every > 1 else 0
    return FfnConfig(
        kind=kind,
        d_ff=4 * d_model if d_ff is None else d_ff,
        activation=activation,
        bias=default_ffn_bias(kind) if bias is None else bias,
        n_experts=n_experts,
        top_k=top_k,
        expert=expert,
        renormalize=renormalize,
        router_bias=router_bias,
        d_shared=d_shared,
        shared_gate=shared_gate,
        first_dense=first_dense,
        every=every,
        d_dense=default_dense if d_dense is None else d_dense,
    )


def default_ffn_bias(kind: FfnKind) -> FfnBias:
    """An mlp has b_in and b_out, a gated ffn b_gate too, experts none."""
    return FfnBias(in_=kind != "moe", gate=kind == "gated", out=kind != "moe")


def position_config(  # noqa: PLR0913 - a keyword for each field
    kind: PositionKind,
    d_head: int,
    *,
    n_positions: int = 0,
    theta: float = 10000.0,
    rotary_dim: int | None = None,
    pairing: Pairing = "half",
    scaling: RopeScaling = RopeScaling(),
    alibi_rule: AlibiRule = "bloom",
    n_buckets: int = 32,
    max_distance: int = 128,
    bidirectional: bool = False,
) -> PositionConfig:
    """rotary_dim = d_head: the whole head turns unless a narrower width is asked for."""
    return PositionConfig(
        kind=kind,
        n_positions=n_positions,
        theta=theta,
        rotary_dim=d_head if rotary_dim is None else rotary_dim,
        pairing=pairing,
        scaling=scaling,
        alibi_rule=alibi_rule,
        n_buckets=n_buckets,
        max_distance=max_distance,
        bidirectional=bidirectional,
    )


def yarn_attention_factor(factor: float) -> float:
    """0.1 ln(factor) + 1, what yarn multiplies cosines and sines by. YaRN, section 3.4."""
    return 0.1 * log(factor) + 1.0 if factor > 1.0 else 1.0


def default_final_norm(norm: NormConfig, vocab: int | None) -> bool:
    """A stack whose stream is not normalized by its last block is before its readout."""
    return vocab is not None and norm.kind != "none" and norm.placement != "post"
