"""A resolved config as answered. A part has the fields that its kind has, one that is off none."""

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


class MlaAnswer(TypedDict):
    """Latent attention."""

    q_lora_rank: Annotated[int | None, Field(description="Queries' latent width; null: none.")]
    kv_lora_rank: Annotated[int, Field(description="Latent width of keys and values.")]
    d_nope: Annotated[int, Field(description="Coordinates of a key of each head's own.")]
    d_rope: Annotated[int, Field(description="Coordinates of a key that turn, shared.")]


class AttentionAnswer(TypedDict):
    """Attention; with kind = none nothing else."""

    kind: Annotated[config.AttentionKind, Field(description="softmax, or none")]
    n_heads: NotRequired[Annotated[int, Field(description="Query heads.")]]
    n_kv_heads: NotRequired[Annotated[int, Field(description="Key/value heads.")]]
    d_head: NotRequired[Annotated[int, Field(description="Width of queries and keys.")]]
    d_value: NotRequired[Annotated[int, Field(description="Width of values.")]]
    scale: NotRequired[Annotated[float, Field(description="Multiplies Q K^T.")]]
    softcap: NotRequired[
        Annotated[float | None, Field(description="c of c · tanh(s / c); null: none.")]
    ]
    qk_norm: NotRequired[
        Annotated[config.QkNorm, Field(description="How queries and keys are normalized.")]
    ]
    sinks: NotRequired[Annotated[bool, Field(description="A learned logit joins each softmax.")]]
    mask: NotRequired[Annotated[config.MaskKind, Field(description="causal or full")]]
    window: NotRequired[Annotated[int | None, Field(description="|n - m| < window; null: none.")]]
    bias: NotRequired[Annotated[AttentionBiasAnswer, Field(description="Which biases exist.")]]
    mla: NotRequired[Annotated[MlaAnswer, Field(description="Latent attention, where it is.")]]


class FfnAnswer(TypedDict):
    """The ffn, with what its kind needs."""

    kind: Annotated[config.FfnKind, Field(description="mlp, gated, moe or none")]
    d_ff: NotRequired[Annotated[int, Field(description="Width of the expansion.")]]
    activation: NotRequired[
        Annotated[config.ActivationName, Field(description="What follows the expansion.")]
    ]
    bias: NotRequired[Annotated[FfnBiasAnswer, Field(description="Which biases exist.")]]
    n_experts: NotRequired[Annotated[int, Field(description="moe: experts.")]]
    top_k: NotRequired[Annotated[int, Field(description="moe: experts a token goes to.")]]
    expert: NotRequired[Annotated[config.ExpertKind, Field(description="moe: gated or mlp.")]]
    renormalize: NotRequired[
        Annotated[bool, Field(description="moe: softmax over the chosen logits, or over all.")]
    ]
    router_bias: NotRequired[Annotated[bool, Field(description="moe: b_router exists.")]]
    d_shared: NotRequired[
        Annotated[int, Field(description="moe: width of the shared expert; 0: none.")]
    ]
    shared_gate: NotRequired[
        Annotated[bool, Field(description="moe: the shared expert's output is weighed.")]
    ]
    first_dense: NotRequired[Annotated[int, Field(description="moe: dense first blocks, if any.")]]
    every: NotRequired[Annotated[int, Field(description="moe: each so many-th, if not all.")]]
    d_dense: NotRequired[Annotated[int, Field(description="moe: width of dense blocks, if any.")]]


class NormAnswer(TypedDict):
    """The norms, with what their kind needs."""

    kind: Annotated[config.NormKind, Field(description="layernorm, rmsnorm or none")]
    placement: NotRequired[
        Annotated[config.Placement, Field(description="pre, post, output or sandwich")]
    ]
    eps: NotRequired[Annotated[float, Field(description="Inside the root.")]]
    gain_offset: NotRequired[Annotated[float, Field(description="Added to the stored weight.")]]
    bias: NotRequired[Annotated[bool, Field(description="layernorm: its bias exists.")]]
    shared: NotRequired[
        Annotated[bool, Field(description="One norm feeds both sublayers of a parallel block.")]
    ]
    gain: NotRequired[Annotated[bool, Field(description="false, where norms hold no numbers.")]]


class RopeScalingAnswer(TypedDict):
    """How RoPE's frequencies are stretched, with what the kind needs."""

    kind: Annotated[config.ScalingKind, Field(description="How they are stretched.")]
    factor: NotRequired[Annotated[float, Field(description="How many times longer.")]]
    original_positions: NotRequired[Annotated[int, Field(description="Positions trained on.")]]
    low_freq_factor: NotRequired[
        Annotated[float, Field(description="llama3: turns below which a pair is stretched whole.")]
    ]
    high_freq_factor: NotRequired[
        Annotated[float, Field(description="llama3: turns above which a pair stays.")]
    ]
    beta_fast: NotRequired[
        Annotated[float, Field(description="yarn: turns above which a pair stays.")]
    ]
    beta_slow: NotRequired[
        Annotated[float, Field(description="yarn: turns below which a pair is stretched whole.")]
    ]
    attention_factor: NotRequired[
        Annotated[float, Field(description="yarn: multiplies cosines and sines.")]
    ]


class PositionAnswer(TypedDict):
    """How position enters, with what its kind needs."""

    kind: Annotated[config.PositionKind, Field(description="How position enters.")]
    n_positions: NotRequired[Annotated[int, Field(description="learned: rows of the table.")]]
    theta: NotRequired[Annotated[float, Field(description="rope: base of the frequencies.")]]
    rotary_dim: NotRequired[Annotated[int, Field(description="rope: coordinates that turn.")]]
    pairing: NotRequired[
        Annotated[config.Pairing, Field(description="rope: which coordinates pair.")]
    ]
    scaling: NotRequired[
        Annotated[RopeScalingAnswer, Field(description="rope: how it is stretched.")]
    ]
    alibi_rule: NotRequired[
        Annotated[config.AlibiRule, Field(description="alibi: the rule of the slopes.")]
    ]
    n_buckets: NotRequired[Annotated[int, Field(description="t5_bias: rows of the table.")]]
    max_distance: NotRequired[
        Annotated[int, Field(description="t5_bias: from here on one bucket.")]
    ]
    bidirectional: NotRequired[
        Annotated[bool, Field(description="t5_bias: later keys have buckets of their own.")]
    ]


class LayerAnswer(TypedDict):
    """What one block does."""

    window: Annotated[int | None, Field(description="|n - m| < window; null: none.")]
    scale: Annotated[float, Field(description="Multiplies Q K^T.")]
    theta: Annotated[
        float | None, Field(description="rope: base of the frequencies; null: nothing turns.")
    ]
    scaling: Annotated[RopeScalingAnswer, Field(description="rope: how it is stretched.")]


class StackAnswer(TypedDict):
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
    topology: Annotated[config.Topology, Field(description="sequential or parallel")]
    residual_multiplier: Annotated[
        float, Field(description="Multiplies what is added to the stream.")
    ]
    cross_attention: Annotated[bool, Field(description="Blocks attend to input.memory too.")]
    embed_multiplier: Annotated[float, Field(description="Multiplies a token's embedding.")]
    embed_norm: Annotated[bool, Field(description="A norm stands below the first block.")]
    token_types: Annotated[int, Field(description="Rows of the table of types; 0: none.")]
    readout: Annotated[bool, Field(description="The model has logits.")]
    mlm_head: Annotated[bool, Field(description="BERT's product and norm before the readout.")]
    logit_multiplier: Annotated[float, Field(description="Multiplies the logits.")]
    logit_softcap: Annotated[float | None, Field(description="c of c · tanh(x / c); null: none.")]
    layers: Annotated[
        list[LayerAnswer], Field(description="A line for each block; none where all are alike.")
    ]


class PatchesAnswer(TypedDict):
    """An image cut into patches."""

    image_size: Annotated[int, Field(description="Pixels of a side.")]
    patch_size: Annotated[int, Field(description="Pixels of a patch's side.")]
    channels: Annotated[int, Field(description="Numbers of a pixel.")]
    bias: Annotated[bool, Field(description="The product has a bias.")]
    class_token: Annotated[bool, Field(description="One more learned row comes first.")]


class ExtraAnswer(TypedDict):
    """A part that no other field says."""

    name: Annotated[str, Field(description="What it is called.")]
    parameters: Annotated[int, Field(description="Numbers it holds.")]


class EncoderAnswer(StackAnswer):
    """The encoder's config resolved: it has no vocab and no encoder of its own."""

    encoder: Annotated[None, Field(description="null")]


class ConfigAnswer(StackAnswer):
    """A config resolved: every field that applies, nothing optional."""

    encoder: Annotated[
        EncoderAnswer | None, Field(description="What reads input.memory; null: there is none.")
    ]
    vocab_padded_to: NotRequired[Annotated[int, Field(description="Rows, where not vocab.")]]
    d_embed: NotRequired[Annotated[int, Field(description="Width below the stack, if another.")]]
    embed_projection_bias: NotRequired[
        Annotated[bool, Field(description="false, where the product to d_model has none.")]
    ]
    distinct_blocks: NotRequired[
        Annotated[int, Field(description="Blocks with weights of their own, where not all.")]
    ]
    patches: NotRequired[Annotated[PatchesAnswer, Field(description="Patches, where there are.")]]
    pooler: NotRequired[Annotated[bool, Field(description="true, where there is a pooler.")]]
    classes: NotRequired[Annotated[int, Field(description="Classes, where there are.")]]
    extras: NotRequired[
        Annotated[list[ExtraAnswer], Field(description="Parts no other field says, if any.")]
    ]
