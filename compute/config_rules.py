"""The rules between a config's fields, checked all at once.

Bounds of single fields (positive, finite, known names) are the asker's; here stands what only
several fields together can break.
"""

from collections.abc import Iterator

from compute.config import ModelConfig
from compute.errors import ConfigError, Fault, refuse_if


def check(config: ModelConfig) -> ModelConfig:
    """The config itself, or a ConfigError with every broken rule."""
    refuse_if(ConfigError, list(_faults(config)))
    return config


def _faults(config: ModelConfig) -> Iterator[Fault]:
    yield from _size_faults(config)
    yield from _block_faults(config)
    if config.attention.kind != "none":
        yield from _head_faults(config)
    yield from _position_faults(config)
    yield from _readout_faults(config)


def _rule(place: str, detail: str, expected: object = None, got: object = None) -> Fault:
    return Fault(
        code="config_rule",
        detail=detail,
        place=tuple(place.split(".")),
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
    if config.attention.kind == "none" and config.ffn.kind == "none":
        yield _rule("ffn.kind", "A block needs attention, an ffn, or both.")
    if config.norm.kind == "none" and config.norm.placement != "pre":
        yield _rule("norm.placement", "norm.kind = none places no norm; leave placement out.")
    if config.ffn.kind == "mlp" and config.ffn.bias.gate:
        yield _rule("ffn.bias.gate", "An mlp has no gate, so no gate bias; use kind = gated.")


def _head_faults(config: ModelConfig) -> Iterator[Fault]:
    attention = config.attention
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
    if position.kind in ("rope", "alibi") and config.attention.kind == "none":
        yield _rule("position.kind", f"{position.kind} works inside attention, and there is none.")
    elif position.kind == "rope":
        yield from _rotary_faults(position.rotary_dim, config.attention.d_head)
    if position.kind == "learned" and position.n_positions < 1:
        yield _rule(
            "position.n_positions",
            "Learned positions need n_positions, the number of rows of pos_embed.W_pos.",
            expected="at least 1",
        )


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
    if config.vocab is None and config.tied:
        yield _rule("tied", "tied ties the readout to the embedding; it needs vocab.")
    if config.vocab is None and config.unembed_bias:
        yield _rule("unembed_bias", "unembed_bias belongs to the readout; it needs vocab.")
    if config.final_norm and config.norm.kind == "none":
        yield _rule("final_norm", "final_norm needs a norm kind other than none.")
