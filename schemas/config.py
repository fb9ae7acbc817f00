"""A model's config as asked for: optional fields, bounds, defaults of the article's block."""

from dataclasses import replace
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from compute import config, config_rules
from compute.config import ModelConfig
from compute.errors import ConfigError, refuse_if
from schemas import config_faults
from schemas.base import Asked, of_form
from schemas.bounds import Count, Multiplier, Positive, Size
from schemas.positions import LayerAsked, PositionAsked
from schemas.sublayers import AttentionAsked, EncoderAttentionAsked, FfnAsked, NormAsked

MOST_LAYERS = 4096


class StackAsked(Asked):
    """A stack of blocks, with what stands below and above it."""

    d_model: Size | None = Field(
        default=None, description="Width d of the stream. Needed without a preset or a name."
    )
    n_layers: Size = Field(default=1, description="Blocks in the stack.")
    attention: AttentionAsked = Field(
        default=AttentionAsked(), description="Give n_heads at least."
    )
    ffn: FfnAsked = Field(default=FfnAsked(), description="Default: mlp, d_ff = 4 · d_model, gelu.")
    norm: NormAsked = Field(default=NormAsked(), description="Default: layernorm, pre.")
    position: PositionAsked = Field(default=PositionAsked(), description="Default: none.")
    final_norm: bool | None = Field(
        default=None,
        description="A norm after the last block. "
        "Default: true for a model with a vocab and norms, unless they are placed post.",
    )
    topology: config.Topology = Field(
        default="sequential",
        description="parallel: attention and ffn both read the stream that enters the block.",
    )
    residual_multiplier: Multiplier = Field(
        default=1.0, description="Multiplies what attention and ffn add to the stream."
    )
    embed_multiplier: Multiplier = Field(
        default=1.0, description="Multiplies a token's row of the embedding."
    )
    embed_norm: bool = Field(
        default=False, description="A norm below the first block, after positions and types."
    )
    token_types: Count = Field(
        default=0, description="Rows t of type_embed.W_type, added by input.token_types; 0: none."
    )
    layers: Annotated[list[LayerAsked], Field(max_length=MOST_LAYERS)] = Field(
        default=[],
        description="What single blocks have of their own: an object for each block, {} for one "
        "that has nothing. Default: all are alike.",
    )

    def stack(self, d_model: int) -> ModelConfig:
        """The stack resolved, without a vocab, and not yet checked."""
        attention, norm = self.attention.to_compute(d_model), self.norm.to_compute()
        alike = ModelConfig(
            d_model=d_model,
            n_layers=self.n_layers,
            attention=attention,
            ffn=self.ffn.to_compute(d_model),
            norm=norm,
            position=self.position.to_compute(attention),
            vocab=None,
            tied=False,
            unembed_bias=False,
            final_norm=bool(self.final_norm),
            readout=False,
            topology=self.topology,
            residual_multiplier=self.residual_multiplier,
            embed_multiplier=self.embed_multiplier,
            embed_norm=self.embed_norm,
            token_types=self.token_types,
        )
        return replace(alike, layers=_layers(self, alike))


def _layers(asked: StackAsked, alike: ModelConfig) -> tuple[config.LayerConfig, ...]:
    """An entry for each block; none where no block has anything of its own."""
    entry = config.layer_config(alike)
    layers = tuple(layer.to_compute(entry) for layer in asked.layers)
    return () if len(layers) == asked.n_layers and set(layers) == {entry} else layers


_OFF_IN_ENCODERS = ("tied", "unembed_bias", "readout", "mlm_head", "cross_attention")
_NEVER_IN_ENCODERS = (
    *dict.fromkeys(("vocab", "logit_softcap", "encoder")).items(),
    *dict.fromkeys(_OFF_IN_ENCODERS, False).items(),
    ("logit_multiplier", 1.0),
)


class EncoderAsked(StackAsked):
    """The stack whose output cross-attention reads; it shares the model's embedding."""

    d_model: Size | None = Field(default=None, description="Width of the stream: the model's.")
    attention: EncoderAttentionAsked = Field(
        default=EncoderAttentionAsked(), description="Give n_heads at least. mask is full here."
    )
    final_norm: bool | None = Field(
        default=None,
        description="A norm after the last block. Default: true where there are norms, unless "
        "they are placed post.",
    )

    @model_validator(mode="before")
    @classmethod
    def _as_answered(cls, raw: object) -> object:
        """An answer's config may be sent again: what it says an encoder never has, is no key."""
        if not isinstance(raw, dict):
            return raw
        return {key: said for key, said in raw.items() if (key, said) not in _NEVER_IN_ENCODERS}

    def to_compute(self, d_model: int) -> ModelConfig:
        """The encoder resolved, to be checked with the model that reads it."""
        made = self.stack(self.d_model or d_model)
        if self.final_norm is not None:
            return made
        placed_after = made.norm.kind == "none" or made.norm.placement == "post"
        return replace(made, final_norm=not placed_after)


class PatchesAsked(Asked):
    """An image cut into square patches, a position each. Sized, not run."""

    image_size: Size | None = Field(
        default=None, description="Pixels of a side; a multiple of patch_size. Needed."
    )
    patch_size: Size | None = Field(default=None, description="Pixels of a patch's side. Needed.")
    channels: Size = Field(default=3, description="Numbers of a pixel.")
    bias: bool = Field(default=True, description="The product has a bias.")
    class_token: bool = Field(default=True, description="One more learned row comes first.")

    def to_compute(self) -> config.PatchesConfig:
        """The part resolved; what is needed is there."""
        return config.PatchesConfig(
            image_size=self.image_size or 0,
            patch_size=self.patch_size or 0,
            channels=self.channels,
            bias=self.bias,
            class_token=self.class_token,
        )


_EXTRA_NAME = r"^[a-z][a-z0-9_.]{0,63}$"
_EXTRA_RULE = (
    "A name of extras has 1 to 64 small letters, digits, dots and underscores, a letter first."
)
ExtraName = Annotated[
    str,
    AfterValidator(of_form(_EXTRA_NAME, _EXTRA_RULE)),
    WithJsonSchema({"type": "string", "pattern": _EXTRA_NAME}),
]


class ExtraAsked(Asked):
    """A part that no other field says. Sized, beside the run."""

    name: ExtraName = Field(description="What it is called.")
    parameters: Annotated[int, Field(ge=0, le=1 << 50)] = Field(description="Numbers it holds.")


class ConfigAsked(StackAsked):
    """A model. Everything but d_model and attention.n_heads may be left out.

    Beside a preset or a name, which bring both, these are changes of its config.
    """

    vocab: Size | None = Field(
        default=None,
        description="Tokens V: gives the model an embedding and a readout. Default: neither.",
    )
    tied: bool = Field(default=False, description="The readout is the transposed embedding.")
    unembed_bias: bool = Field(default=False, description="The readout has a bias b_U.")
    readout: bool = Field(
        default=True,
        description="A model with a vocab has logits; false: its embedding has no readout. "
        "Without a vocab there is none.",
    )
    mlm_head: bool = Field(
        default=False,
        description="Before the readout stand a product, ffn.activation and a norm, as in BERT.",
    )
    logit_multiplier: Multiplier = Field(default=1.0, description="Multiplies the logits.")
    logit_softcap: Positive | None = Field(
        default=None, description="c: a logit x becomes c · tanh(x / c). Default: none."
    )
    cross_attention: bool | None = Field(
        default=None,
        description="Between attention and ffn each block attends to input.memory. "
        "Default: where there is an encoder.",
    )
    encoder: EncoderAsked | None = Field(
        default=None, description="A stack that reads input.memory first. Default: none."
    )
    vocab_padded_to: Size | None = Field(
        default=None,
        description="Rows of the embedding and the readout, where they are more than vocab. "
        "Sized, not run.",
    )
    d_embed: Size | None = Field(
        default=None,
        description="Width of tables and norm below the stack, where a product takes them to "
        "d_model. Sized, not run. Default: d_model, no product.",
    )
    embed_projection_bias: bool = Field(
        default=True, description="With d_embed: the product has a bias."
    )
    distinct_blocks: Size | None = Field(
        default=None,
        description="So many blocks have weights of their own, which the stack goes through "
        "again and again. Sized, not run. Default: n_layers.",
    )
    patches: PatchesAsked | None = Field(
        default=None,
        description="Positions are patches of an image, in the place of tokens. Sized, not run.",
    )
    pooler: bool = Field(
        default=False,
        description="A product and a bias over the first row, as in BERT. Sized, beside the run.",
    )
    classes: Count = Field(
        default=0,
        description="A readout with a bias of so many classes. Sized, beside the run.",
    )
    extras: Annotated[list[ExtraAsked], Field(max_length=64)] = Field(
        default=[], description="Parts that no other field says. Sized, beside the run."
    )

    def to_compute(self) -> ModelConfig:
        """The config resolved, nothing optional; a ConfigError with every broken rule."""
        faults = [*config_faults.missing(self), *config_faults.of_another_kind(self)]
        refuse_if(ConfigError, faults)
        d_model = self.d_model or 0
        made = self.stack(d_model)
        final_norm = config.default_final_norm(made.norm, self.vocab)
        encoder = None if self.encoder is None else self.encoder.to_compute(d_model)
        crossed = encoder is not None if self.cross_attention is None else self.cross_attention
        return config_rules.check(
            replace(
                made,
                vocab=self.vocab,
                tied=self.tied,
                unembed_bias=self.unembed_bias,
                final_norm=final_norm if self.final_norm is None else self.final_norm,
                readout=self.readout and self.vocab is not None,
                mlm_head=self.mlm_head,
                logit_multiplier=self.logit_multiplier,
                logit_softcap=self.logit_softcap,
                cross_attention=crossed,
                encoder=encoder,
                vocab_padded_to=self.vocab_padded_to,
                d_embed=self.d_embed,
                embed_projection_bias=self.embed_projection_bias,
                distinct_blocks=self.distinct_blocks,
                patches=None if self.patches is None else self.patches.to_compute(),
                pooler=self.pooler,
                classes=self.classes,
                extras=tuple(config.ExtraConfig(**extra.model_dump()) for extra in self.extras),
            )
        )
