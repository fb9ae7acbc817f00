"""The rules between a config's fields, checked all at once.

Bounds of single fields (positive, finite, known names) are the asker's; here stands what only
several fields together can break.
"""

from collections.abc import Iterator
from dataclasses import replace

from compute import config_sized
from compute.config import (
    FfnConfig,
    ModelConfig,
    PositionConfig,
    RopeScaling,
    reads_out,
)
from compute.config_sized import rule
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
        for fault in config_sized.not_run(stack)
    ]
    refuse_if(ConfigError, faults)
    return config


def _faults(config: ModelConfig) -> Iterator[Fault]:
    yield from _size_faults(config)
    yield from _block_faults(config)
    yield from _norm_faults(config)
    if config.attention.kind != "none":
        yield from _head_faults(config)
    if config.ffn.kind == "moe":
        yield from _expert_faults(config.ffn)
        yield from config_sized.dense_faults(config)
    yield from _position_faults(config)
    yield from _layer_faults(config)
    yield from _readout_faults(config)
    yield from config_sized.faults(config)
    if config.encoder is not None:
        yield from _encoder_faults(config, config.encoder)


def _size_faults(config: ModelConfig) -> Iterator[Fault]:
    sizes = {"d_model": config.d_model, "n_layers": config.n_layers, "vocab": config.vocab}
    if config.attention.kind != "none":
        for name in ("n_heads", "n_kv_heads", "d_value", "window"):
            sizes[f"attention.{name}"] = getattr(config.attention, name)
    if config.ffn.kind != "none":
        sizes["ffn.d_ff"] = config.ffn.d_ff
    for place, size in sizes.items():
        if size is not None and size < 1 and not _follows_from_heads(place, config):
            yield rule(place, f"{place} must be at least 1.", expected="at least 1", got=size)


def _follows_from_heads(place: str, config: ModelConfig) -> bool:
    """d_value is 0 where d_head has no default: one fault says both."""
    return place == "attention.d_value" and config.attention.d_head == 0


def _block_faults(config: ModelConfig) -> Iterator[Fault]:
    has_both = config.attention.kind != "none" and config.ffn.kind != "none"
    if config.attention.kind == "none" and config.ffn.kind == "none":
        yield rule("ffn.kind", "A block needs attention, an ffn, or both.")
    if config.ffn.bias.gate and not has_gate(config.ffn) and config.ffn.kind != "none":
        yield rule("ffn.bias.gate", "An mlp has no gate, so no gate bias; use kind = gated.")
    if config.topology == "parallel" and not (has_both and config.norm.placement == "pre"):
        yield rule(
            "topology",
            "A parallel block has attention and an ffn that read the same stream, with norms "
            "before them: norm.placement = pre.",
        )
    if config.cross_attention and not (has_both and config.topology == "sequential"):
        yield rule(
            "cross_attention", "Cross-attention stands between attention and ffn, one by one."
        )
    elif config.cross_attention and config.norm.placement not in ("pre", "post"):
        yield rule(
            "cross_attention", "With cross-attention norms are placed pre or post.", "pre | post"
        )


def _norm_faults(config: ModelConfig) -> Iterator[Fault]:
    norm = config.norm
    if norm.shared and config.topology != "parallel":
        yield rule("norm.shared", "Only a parallel block shares a norm: topology = parallel.")
    if norm.kind != "none":
        return
    if norm.placement != "pre":
        yield rule("norm.placement", "norm.kind = none places no norm; leave placement out.")
    needing = {
        "embed_norm": config.embed_norm,
        "mlm_head": config.mlm_head,
        "attention.qk_norm": config.attention.qk_norm != "none",
    }
    for place, wanted in needing.items():
        if wanted:
            yield rule(place, f"{place} needs a norm kind other than none.")


def _expert_faults(ffn: FfnConfig) -> Iterator[Fault]:
    for name in ("n_experts", "top_k"):
        if getattr(ffn, name) < 1:
            yield rule(f"ffn.{name}", f"A mixture of experts needs {name}.", "at least 1")
    if ffn.n_experts > MOST_EXPERTS:
        detail = f"A mixture has at most {MOST_EXPERTS} experts."
        yield rule("ffn.n_experts", detail, f"at most {MOST_EXPERTS}", ffn.n_experts)
    if ffn.top_k > ffn.n_experts > 0:
        detail = f"top_k = {ffn.top_k} is more than there are experts, {ffn.n_experts}."
        yield rule("ffn.top_k", detail, f"at most {ffn.n_experts}", ffn.top_k)
    if ffn.shared_gate and not ffn.d_shared:
        yield rule("ffn.shared_gate", "shared_gate weighs a shared expert: give d_shared.")


def _head_faults(config: ModelConfig) -> Iterator[Fault]:
    attention = config.attention
    yield from config_sized.latent_faults(config, attention)
    if attention.d_head == 0:
        yield rule(
            "attention.n_heads",
            f"d_model = {config.d_model} is not divisible by n_heads = {attention.n_heads}, "
            "so d_head has no default; give d_head (it is free of d_model / n_heads).",
            expected="a divisor of d_model, or d_head given",
            got=attention.n_heads,
        )
    if attention.n_kv_heads > 0 and attention.n_heads % attention.n_kv_heads:
        yield rule(
            "attention.n_kv_heads",
            f"n_heads = {attention.n_heads} is not a multiple of n_kv_heads = "
            f"{attention.n_kv_heads}: every key/value head serves the same number of heads.",
            expected="a divisor of n_heads",
            got=attention.n_kv_heads,
        )


def _position_faults(config: ModelConfig) -> Iterator[Fault]:
    position = config.position
    if position.kind in ("rope", "alibi", "t5_bias") and config.attention.kind == "none":
        yield rule("position.kind", f"{position.kind} works inside attention, and there is none.")
    elif position.kind == "rope":
        yield from _rotary_faults(position.rotary_dim, config.attention.d_head)
        yield from _scaling_faults("position.scaling", position.scaling, position)
        yield from _theta_faults("position.theta", position.theta, position.scaling)
    if position.kind == "learned" and position.n_positions < 1:
        yield rule(
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
        yield rule("position.n_buckets", detail, f"a multiple of {2 * sides}", position.n_buckets)
    elif position.max_distance <= exact:
        detail = f"Distances up to {exact - 1} have a bucket each; max_distance lies beyond them."
        yield rule("position.max_distance", detail, f"above {exact}", position.max_distance)


def _scaling_faults(place: str, scaling: RopeScaling, position: PositionConfig) -> Iterator[Fault]:
    if scaling.kind in ("dynamic", "yarn", "llama3") and scaling.original_positions < 1:
        detail = f"{scaling.kind} scaling needs original_positions, the length trained on."
        yield rule(f"{place}.original_positions", detail, expected="at least 1")
    if scaling.kind == "dynamic" and position.rotary_dim == 2:
        yield rule(f"{place}.kind", "dynamic scaling has the exponent r / (r - 2): r is not 2.")
    if scaling.kind == "llama3" and scaling.high_freq_factor <= scaling.low_freq_factor:
        detail = "high_freq_factor lies above low_freq_factor."
        expected, got = f"above {scaling.low_freq_factor}", scaling.high_freq_factor
        yield rule(f"{place}.high_freq_factor", detail, expected, got)
    if scaling.kind == "yarn" and scaling.beta_fast <= scaling.beta_slow:
        expected, got = f"above {scaling.beta_slow}", scaling.beta_fast
        yield rule(f"{place}.beta_fast", "beta_fast lies above beta_slow.", expected, got)


def _theta_faults(place: str, theta: float, scaling: RopeScaling) -> Iterator[Fault]:
    if scaling.kind == "yarn" and theta <= 1.0:
        detail = "yarn tells pairs apart by how fast they turn, slower from pair to pair."
        yield rule(place, detail, expected="above 1", got=theta)


def _layer_faults(config: ModelConfig) -> Iterator[Fault]:
    if config.layers and len(config.layers) != config.n_layers:
        detail = "layers has one entry for each block."
        yield rule("layers", detail, config.n_layers, len(config.layers))
    for at, layer in enumerate(config.layers[: config.n_layers]):
        place = f"layers.{at}"
        if layer.window is not None and layer.window < 1:
            yield rule(f"{place}.window", "window must be at least 1.", "at least 1", layer.window)
        if layer.theta is not None and config.position.kind != "rope":
            yield rule(f"{place}.theta", "theta belongs to position.kind = rope.")
        elif layer.theta is not None:
            yield from _scaling_faults(f"{place}.scaling", layer.scaling, config.position)
            yield from _theta_faults(f"{place}.theta", layer.theta, layer.scaling)
    if config.layers and config.attention.kind == "none":
        yield rule("layers", "layers says what attention does in each block, and there is none.")


def _encoder_faults(config: ModelConfig, encoder: ModelConfig) -> Iterator[Fault]:
    if not config.cross_attention:
        yield rule("encoder", "Nothing reads an encoder without cross_attention.")
    if encoder.d_model != config.d_model:
        detail = "Encoder and decoder share the embedding, so d_model is the same."
        yield rule("encoder.d_model", detail, config.d_model, encoder.d_model)
    off = {"vocab": encoder.vocab, "encoder": encoder.encoder, "cross_attention": None}
    if encoder.cross_attention or any(value is not None for value in off.values()):
        yield rule("encoder", "An encoder has no readout, no encoder and no cross-attention.")
        return
    for fault in _faults(encoder):
        yield replace(fault, place=("encoder", *fault.place))


def _rotary_faults(rotary_dim: int, d_head: int) -> Iterator[Fault]:
    if d_head and not (2 <= rotary_dim <= d_head and rotary_dim % 2 == 0):
        yield rule(
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
                yield rule(place, f"{place} belongs to the readout; {missing}.")
    if config.final_norm and config.norm.kind == "none":
        yield rule("final_norm", "final_norm needs a norm kind other than none.")
