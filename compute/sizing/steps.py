"""The next value of each whole-number field of a config that the rules allow, all else kept."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import isqrt
from typing import Any

from compute import config_rules
from compute.config import ModelConfig
from compute.errors import ConfigError

_MOST_TRIED = 8
"""Steps of one that are tried until the rules allow one."""


@dataclass(frozen=True, slots=True)
class Step:
    """A field, its value, the next one, and the config that has it."""

    name: str
    value: int
    after: int
    config: ModelConfig


_PLAIN = (
    *("d_model", "n_layers", "encoder.n_layers", "distinct_blocks", "d_embed"),
    *("attention.d_head", "attention.d_value", "attention.window"),
    *("attention.mla.q_lora_rank", "attention.mla.kv_lora_rank"),
    *("attention.mla.d_nope", "attention.mla.d_rope"),
    *("ffn.d_ff", "ffn.n_experts", "ffn.top_k", "ffn.d_shared"),
    *("ffn.first_dense", "ffn.d_dense"),
    *("encoder.ffn.d_ff", "vocab", "vocab_padded_to", "position.n_positions"),
    *("position.n_buckets", "token_types", "classes"),
)
_OF_MLA = ("attention.d_head",)
_KINDS = {
    "position.n_positions": ("learned",),
    "position.n_buckets": ("t5_bias",),
    "ffn.n_experts": ("moe",),
    "ffn.top_k": ("moe",),
    "ffn.d_shared": ("moe",),
    "ffn.first_dense": ("moe",),
    "ffn.d_dense": ("moe",),
}
"""Fields that only some kinds of their part have."""


def of(config: ModelConfig) -> Iterator[Step]:
    """A step of each field that this config says and that can grow."""
    for name in _present(config):
        found = _plain(config, name)
        if found is not None:
            yield found
    yield from _heads(config)


def fixed(config: ModelConfig) -> Iterator[tuple[str, str]]:
    """The fields that this config says and that cannot grow by themselves, and why."""
    for name in _present(config):
        if _plain(config, name) is None:
            yield name, "No larger value is allowed with the other fields as they are."
    if config.attention.kind != "none" and config.attention.n_kv_heads == config.attention.n_heads:
        yield "attention.n_kv_heads", "Every head has keys and values of its own already."


def _present(config: ModelConfig) -> Iterator[str]:
    """The plain fields whose value is more than 0 here."""
    for name in _PLAIN:
        part, _, _ = name.rpartition(".")
        kinds = _KINDS.get(name)
        has_kind = kinds is None or getattr(_get(config, part), "kind", "") in kinds
        is_latent = config.attention.mla is not None and name in _OF_MLA
        if has_kind and not is_latent and _get(config, name):
            yield name


def _plain(config: ModelConfig, name: str) -> Step | None:
    value = _get(config, name)
    for after in range(value + 1, value + 1 + _MOST_TRIED):
        made = _allowed(partial(_moved, config, name, after))
        if made is not None:
            return Step(name, value, after, made)
    return None


def _heads(config: ModelConfig) -> Iterator[Step]:
    """Query heads in the steps that key/value heads leave; theirs in divisors of the others."""
    attention = config.attention
    h, g = attention.n_heads, attention.n_kv_heads
    if attention.kind == "none":
        return
    more, kept = (h + 1, h + 1) if h == g else (h + g, g)
    grown = replace(attention, n_heads=more, n_kv_heads=kept)
    made = _allowed(lambda: replace(config, attention=grown))
    if made is not None:
        yield Step("attention.n_heads", h, more, made)
    if h == g:
        return
    wider = min(x for x in _divisors(h) if x > g)
    made = _allowed(lambda: replace(config, attention=replace(attention, n_kv_heads=wider)))
    if made is not None:
        yield Step("attention.n_kv_heads", g, wider, made)


def _divisors(number: int) -> set[int]:
    small = {x for x in range(1, isqrt(number) + 1) if number % x == 0}
    return small | {number // x for x in small}


def _allowed(make: Callable[[], ModelConfig]) -> ModelConfig | None:
    try:
        return config_rules.check(make())
    except ConfigError:
        return None


def _moved(config: ModelConfig, name: str, value: int) -> ModelConfig:
    """The config with another value of a field, and what has to go with it."""
    made = _replaced(config, name.split("."), value)
    if name == "d_model" and config.encoder is not None:
        made = replace(made, encoder=replace(config.encoder, d_model=value))
    if name == "n_layers" and config.layers:
        made = replace(made, layers=(*config.layers, config.layers[-1]))
    if name == "attention.window":
        layers = (replace(x, window=x.window and value) for x in config.layers)
        made = replace(made, layers=tuple(layers))
    if name.startswith("attention.mla.d_"):
        mla = made.attention.mla
        width = 0 if mla is None else mla.d_nope + mla.d_rope
        made = replace(made, attention=replace(made.attention, d_head=width))
    return made


def _replaced(part: Any, path: list[str], value: int) -> Any:  # noqa: ANN401 - a part of a config
    first, *rest = path
    inner = _replaced(getattr(part, first), rest, value) if rest else value
    return replace(part, **{first: inner})


def _get(config: ModelConfig, name: str) -> Any:  # noqa: ANN401 - any part
    found: Any = config
    for key in filter(None, name.split(".")):
        found = None if found is None else getattr(found, key)
    return found
