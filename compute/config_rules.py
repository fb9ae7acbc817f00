"""The rules between a config's fields, checked all at once.

Bounds of single fields (positive, finite, known names) are the asker's; here stands what only
several fields together can break.
"""

from collections.abc import Iterator
from dataclasses import replace

from compute.config import (
    AttentionConfig,
    FfnConfig,
    ModelConfig,
    PositionConfig,
    RopeScaling,
    reads_out,
)
from compute.errors import ConfigError, Fault, refuse_if
from compute.tensors import has_gate

MOST_EXPERTS = 4096
"""Experts are worked through one by one."""


def check(config: ModelConfig) -> ModelConfig:
    """The config itself, or a ConfigError with every broken rule."""
    refuse_if(ConfigError, list(_faults(config)))
    return config


def check_run(config: ModelConfig) -> ModelConfig:
    """The config itself, or a ConfigError that names all of it that is sized and not run."""
    stacks = (((), config), (("encoder",), config.encoder))
    faults = [
        replace(fault, place=(*above, *fault.place))
        for above, stack in stacks
        if stack is not None
        for fault in _sized_only(stack)
    ]
    refuse_if(ConfigError, faults)
    return config


def _sized_only(config: ModelConfig) -> Iterator[Fault]:
    dense_too = config.ffn.first_dense > 0 or config.ffn.every > 1
    sized = {
        "attention.mla": (config.attention.mla is not None, "latent attention"),
        "ffn.first_dense": (config.ffn.first_dense > 0, "a mixture with dense blocks"),
        "ffn.every": (config.ffn.every > 1, "a mixture with dense blocks"),
        "ffn.d_dense": (config.ffn.d_dense > 0 and not dense_too, "a mixture with dense blocks"),
        "norm.gain": (not config.norm.gain, "norms without numbers"),
        "vocab_padded_to": (config.vocab_padded_to is not None, "a padded vocabulary"),
        "d_embed": (config.d_embed is not None, "an embedding of another width"),
        "distinct_blocks": (config.distinct_blocks is not None, "blocks that share weights"),
        "patches": (config.patches is not None, "patches of an image"),
    }
    for place, (said, words) in sized.items():
        if said:
            detail = f"{place}: {words} can be sized (POST /v1/sizing) and not run."
            yield replace(_rule(place, detail), code="sized_only")


def _faults(config: ModelConfig) -> Iterator[Fault]:
    yield from _size_faults(config)
    yield from _block_faults(config)
    yield from _norm_faults(config)
    if config.attention.kind != "none":
        yield from _head_faults(config)
    if config.ffn.kind == "moe":
        yield from _expert_faults(config.ffn)
        yield from _dense_faults(config)
    yield from _position_faults(config)
    yield from _layer_faults(config)
    yield from _readout_faults(config)
    yield from _sharing_faults(config)
    yield from _vocab_faults(config)
    yield from _patch_faults(config)
    yield from _extra_faults(config)
    if config.encoder is not None:
        yield from _encoder_faults(config, config.encoder)


def _rule(place: str, detail: str, expected: object = None, got: object = None) -> Fault:
    return Fault(
        code="config_rule",
        detail=detail,
        place=tuple(int(part) if part.isdecimal() else part for part in place.split(".")),
        expected=expected,
        got=got,
    )


def _size_faults(config: ModelConfig) -> Iterator[Fault]:
    sizes = {"d_model": config.d_model, "n_layers": config.n_layers, "vocab": config.vocab}
    if config.attention.kind != "none":
        for name in ("n_heads", "n_kv_heads", "d_value", "window"):
            sizes[f"attention.{name}"] = getattr(config.attention, name)
    if config.ffn.kind != "none":
        sizes["ffn.d_ff"] = config.ffn.d_ff
    for place, size in sizes.items():
        if size is not None and size < 1 and not _follows_from_heads(place, config):
            yield _rule(place, f"{place} must be at least 1.", expected="at least 1", got=size)


def _follows_from_heads(place: str, config: ModelConfig) -> bool:
    """d_value is 0 where d_head has no default: one fault says both."""
    return place == "attention.d_value" and config.attention.d_head == 0


def _block_faults(config: ModelConfig) -> Iterator[Fault]:
    has_both = config.attention.kind != "none" and config.ffn.kind != "none"
    if config.attention.kind == "none" and config.ffn.kind == "none":
        yield _rule("ffn.kind", "A block needs attention, an ffn, or both.")
    if config.ffn.bias.gate and not has_gate(config.ffn) and config.ffn.kind != "none":
        yield _rule("ffn.bias.gate", "An mlp has no gate, so no gate bias; use kind = gated.")
    if config.topology == "parallel" and not (has_both and config.norm.placement == "pre"):
        yield _rule(
            "topology",
            "A parallel block has attention and an ffn that read the same stream, with norms "
            "before them: norm.placement = pre.",
        )
    if config.cross_attention and not (has_both and config.topology == "sequential"):
        yield _rule(
            "cross_attention", "Cross-attention stands between attention and ffn, one by one."
        )
    elif config.cross_attention and config.norm.placement not in ("pre", "post"):
        yield _rule(
            "cross_attention", "With cross-attention norms are placed pre or post.", "pre | post"
        )


def _norm_faults(config: ModelConfig) -> Iterator[Fault]:
    norm = config.norm
    if norm.shared and config.topology != "parallel":
        yield _rule("norm.shared", "Only a parallel block shares a norm: topology = parallel.")
    if norm.kind != "none":
        return
    if norm.placement != "pre":
        yield _rule("norm.placement", "norm.kind = none places no norm; leave placement out.")
    needing = {
        "embed_norm": config.embed_norm,
        "mlm_head": config.mlm_head,
        "attention.qk_norm": config.attention.qk_norm != "none",
    }
    for place, wanted in needing.items():
        if wanted:
            yield _rule(place, f"{place} needs a norm kind other than none.")


def _expert_faults(ffn: FfnConfig) -> Iterator[Fault]:
    for name in ("n_experts", "top_k"):
        if getattr(ffn, name) < 1:
            yield _rule(f"ffn.{name}", f"A mixture of experts needs {name}.", "at least 1")
    if ffn.n_experts > MOST_EXPERTS:
        detail = f"A mixture has at most {MOST_EXPERTS} experts."
        yield _rule("ffn.n_experts", detail, f"at most {MOST_EXPERTS}", ffn.n_experts)
    if ffn.top_k > ffn.n_experts > 0:
        detail = f"top_k = {ffn.top_k} is more than there are experts, {ffn.n_experts}."
        yield _rule("ffn.top_k", detail, f"at most {ffn.n_experts}", ffn.top_k)
    if ffn.shared_gate and not ffn.d_shared:
        yield _rule("ffn.shared_gate", "shared_gate weighs a shared expert: give d_shared.")


def _dense_faults(config: ModelConfig) -> Iterator[Fault]:
    ffn = config.ffn
    if ffn.first_dense > config.n_layers:
        detail = f"first_dense = {ffn.first_dense} is more than there are blocks."
        yield _rule("ffn.first_dense", detail, f"at most {config.n_layers}", ffn.first_dense)
    if ffn.d_dense and not (ffn.first_dense or ffn.every > 1):
        yield _rule(
            "ffn.d_dense", "d_dense is the width of dense blocks: give first_dense or every."
        )


def _latent_faults(config: ModelConfig, attention: AttentionConfig) -> Iterator[Fault]:
    mla = attention.mla
    if mla is None:
        return
    if attention.d_head != mla.d_nope + mla.d_rope:
        detail = f"With mla d_head is d_nope + d_rope = {mla.d_nope + mla.d_rope}; leave it out."
        expected = mla.d_nope + mla.d_rope
        yield _rule("attention.d_head", detail, expected, attention.d_head)
    if attention.n_kv_heads != attention.n_heads:
        detail = "With mla every head has keys and values of its own: n_kv_heads = n_heads."
        yield _rule("attention.n_kv_heads", detail, attention.n_heads, attention.n_kv_heads)
    yield from _not_latent(config, attention)


def _not_latent(config: ModelConfig, attention: AttentionConfig) -> Iterator[Fault]:
    """What is not known of latent attention."""
    unknown = {
        "attention.sinks": (attention.sinks, "With mla sinks are not known."),
        "attention.qk_norm": (
            attention.qk_norm != "none",
            "With mla the latent numbers are normalized: leave it out.",
        ),
        "cross_attention": (config.cross_attention, "Cross-attention with mla is not known."),
    }
    for name in ("q", "k", "v"):
        said = getattr(attention.bias, name)
        unknown[f"attention.bias.{name}"] = (said, f"mla has no bias of {name}.")
    for place, (said, detail) in unknown.items():
        if said:
            yield _rule(place, detail)


def _head_faults(config: ModelConfig) -> Iterator[Fault]:
    attention = config.attention
    yield from _latent_faults(config, attention)
    if attention.d_head == 0:
        yield _rule(
            "attention.n_heads",
            f"d_model = {config.d_model} is not divisible by n_heads = {attention.n_heads}, "
            "so d_head has no default; give d_head (it is free of d_model / n_heads).",
            expected="a divisor of d_model, or d_head given",
            got=attention.n_heads,
        )
    if attention.n_kv_heads > 0 and attention.n_heads % attention.n_kv_heads:
        yield _rule(
            "attention.n_kv_heads",
            f"n_heads = {attention.n_heads} is not a multiple of n_kv_heads = "
            f"{attention.n_kv_heads}: every key/value head serves the same number of heads.",
            expected="a divisor of n_heads",
            got=attention.n_kv_heads,
        )


def _position_faults(config: ModelConfig) -> Iterator[Fault]:
    position = config.position
    if position.kind in ("rope", "alibi", "t5_bias") and config.attention.kind == "none":
        yield _rule("position.kind", f"{position.kind} works inside attention, and there is none.")
    elif position.kind == "rope":
        yield from _rotary_faults(position.rotary_dim, config.attention.d_head)
        yield from _scaling_faults("position.scaling", position.scaling, position)
        yield from _theta_faults("position.theta", position.theta, position.scaling)
    if position.kind == "learned" and position.n_positions < 1:
        yield _rule(
            "position.n_positions",
            "Learned positions need n_positions, the number of rows of pos_embed.W_pos.",
            expected="at least 1",
        )
    if position.kind == "t5_bias":
        yield from _bucket_faults(position)


def _bucket_faults(position: PositionConfig) -> Iterator[Fault]:
    sides = 2 if position.bidirectional else 1
    exact = position.n_buckets // sides // 2
    if position.n_buckets % sides or exact < 1:
        detail = "n_buckets is split: both directions, then near and far."
        yield _rule("position.n_buckets", detail, f"a multiple of {2 * sides}", position.n_buckets)
    elif position.max_distance <= exact:
        detail = f"Distances up to {exact - 1} have a bucket each; max_distance lies beyond them."
        yield _rule("position.max_distance", detail, f"above {exact}", position.max_distance)


def _scaling_faults(place: str, scaling: RopeScaling, position: PositionConfig) -> Iterator[Fault]:
    if scaling.kind in ("dynamic", "yarn", "llama3") and scaling.original_positions < 1:
        detail = f"{scaling.kind} scaling needs original_positions, the length trained on."
        yield _rule(f"{place}.original_positions", detail, expected="at least 1")
    if scaling.kind == "dynamic" and position.rotary_dim == 2:
        yield _rule(f"{place}.kind", "dynamic scaling has the exponent r / (r - 2): r is not 2.")
    if scaling.kind == "llama3" and scaling.high_freq_factor <= scaling.low_freq_factor:
        detail = "high_freq_factor lies above low_freq_factor."
        expected, got = f"above {scaling.low_freq_factor}", scaling.high_freq_factor
        yield _rule(f"{place}.high_freq_factor", detail, expected, got)
    if scaling.kind == "yarn" and scaling.beta_fast <= scaling.beta_slow:
        expected, got = f"above {scaling.beta_slow}", scaling.beta_fast
        yield _rule(f"{place}.beta_fast", "beta_fast lies above beta_slow.", expected, got)


def _theta_faults(place: str, theta: float, scaling: RopeScaling) -> Iterator[Fault]:
    if scaling.kind == "yarn" and theta <= 1.0:
        detail = "yarn tells pairs apart by how fast they turn, slower from pair to pair."
        yield _rule(place, detail, expected="above 1", got=theta)


def _layer_faults(config: ModelConfig) -> Iterator[Fault]:
    if config.layers and len(config.layers) != config.n_layers:
        detail = "layers has one entry for each block."
        yield _rule("layers", detail, config.n_layers, len(config.layers))
    for at, layer in enumerate(config.layers[: config.n_layers]):
        place = f"layers.{at}"
        if layer.window is not None and layer.window < 1:
            yield _rule(f"{place}.window", "window must be at least 1.", "at least 1", layer.window)
        if layer.theta is not None and config.position.kind != "rope":
            yield _rule(f"{place}.theta", "theta belongs to position.kind = rope.")
        elif layer.theta is not None:
            yield from _scaling_faults(f"{place}.scaling", layer.scaling, config.position)
            yield from _theta_faults(f"{place}.theta", layer.theta, layer.scaling)
    if config.layers and config.attention.kind == "none":
        yield _rule("layers", "layers says what attention does in each block, and there is none.")


def _encoder_faults(config: ModelConfig, encoder: ModelConfig) -> Iterator[Fault]:
    if not config.cross_attention:
        yield _rule("encoder", "Nothing reads an encoder without cross_attention.")
    if encoder.d_model != config.d_model:
        detail = "Encoder and decoder share the embedding, so d_model is the same."
        yield _rule("encoder.d_model", detail, config.d_model, encoder.d_model)
    off = {"vocab": encoder.vocab, "encoder": encoder.encoder, "cross_attention": None}
    if encoder.cross_attention or any(value is not None for value in off.values()):
        yield _rule("encoder", "An encoder has no readout, no encoder and no cross-attention.")
        return
    for fault in _faults(encoder):
        yield replace(fault, place=("encoder", *fault.place))


def _sharing_faults(config: ModelConfig) -> Iterator[Fault]:
    distinct = config.distinct_blocks
    if distinct is None:
        return
    if distinct > config.n_layers:
        detail = f"distinct_blocks = {distinct} is more than there are blocks."
        yield _rule("distinct_blocks", detail, f"at most {config.n_layers}", distinct)
    if config.ffn.first_dense or config.ffn.every > 1:
        yield _rule("distinct_blocks", "Blocks that share weights are alike: all of experts.")


def _vocab_faults(config: ModelConfig) -> Iterator[Fault]:
    padded, vocab = config.vocab_padded_to, config.vocab
    if vocab is None:
        for place, said in (("vocab_padded_to", padded), ("d_embed", config.d_embed)):
            if said is not None:
                yield _rule(place, f"{place} belongs to an embedding; it needs vocab.")
    elif padded is not None and padded < vocab:
        detail = f"vocab_padded_to = {padded} is less than vocab = {vocab}."
        yield _rule("vocab_padded_to", detail, f"at least {vocab}", padded)
    if config.d_embed == config.d_model:
        detail = "d_embed is d_model: leave it out; there is no product between equal widths."
        yield _rule("d_embed", detail, f"not {config.d_model}", config.d_embed)


def _extra_faults(config: ModelConfig) -> Iterator[Fault]:
    names = [extra.name for extra in config.extras]
    for at, name in enumerate(names):
        if name in names[:at]:
            yield _rule(f"extras.{at}.name", "Each of extras has a name of its own.")


def _patch_faults(config: ModelConfig) -> Iterator[Fault]:
    patches = config.patches
    if patches is None:
        return
    if patches.image_size % patches.patch_size:
        detail = f"image_size = {patches.image_size} is not a multiple of patch_size."
        expected = f"a multiple of {patches.patch_size}"
        yield _rule("patches.image_size", detail, expected, patches.image_size)
    if config.vocab is not None:
        yield _rule("patches", "Patches take the place of tokens: leave vocab out.")


def _rotary_faults(rotary_dim: int, d_head: int) -> Iterator[Fault]:
    if d_head and not (2 <= rotary_dim <= d_head and rotary_dim % 2 == 0):
        yield _rule(
            "position.rotary_dim",
            f"RoPE turns pairs of coordinates: rotary_dim must be even and between 2 and "
            f"d_head = {d_head}.",
            expected=f"an even number from 2 to {d_head}",
            got=rotary_dim,
        )


def _readout_faults(config: ModelConfig) -> Iterator[Fault]:
    of_readout = {
        "tied": config.tied,
        "unembed_bias": config.unembed_bias,
        "mlm_head": config.mlm_head,
        "logit_softcap": config.logit_softcap is not None,
        "logit_multiplier": config.logit_multiplier != 1.0,
    }
    if not reads_out(config):
        missing = "it needs vocab" if config.vocab is None else "readout is false"
        for place, given in of_readout.items():
            if given:
                yield _rule(place, f"{place} belongs to the readout; {missing}.")
    if config.final_norm and config.norm.kind == "none":
        yield _rule("final_norm", "final_norm needs a norm kind other than none.")
