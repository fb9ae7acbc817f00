"""A resolved config as JSON and back.

Only the fields that apply are written (`{"kind": "none"}` for a part that is off). Reading is
strict: every field that applies, of its type, and nothing else; what only some arrangements have
may be left out.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from compute import config_rules
from compute.config import (
    AttentionConfig,
    FfnConfig,
    ModelConfig,
    NormConfig,
    PatchesConfig,
    PositionConfig,
    RopeScaling,
    reads_out,
)
from compute.errors import ConfigError, Fault, Place

T = TypeVar("T")

_BIASES = ("d_ff", "activation", "bias")
_SCALED = ("factor", "original_positions")
_APPLYING = {
    (AttentionConfig, "none"): (),
    (FfnConfig, "none"): (),
    (FfnConfig, "mlp"): _BIASES,
    (FfnConfig, "gated"): _BIASES,
    (NormConfig, "none"): (),
    (NormConfig, "rmsnorm"): ("placement", "eps", "gain_offset", "shared", "gain"),
    (PositionConfig, "none"): (),
    (PositionConfig, "sinusoidal"): (),
    (PositionConfig, "learned"): ("n_positions",),
    (PositionConfig, "rope"): ("theta", "rotary_dim", "pairing", "scaling"),
    (PositionConfig, "alibi"): ("alibi_rule",),
    (PositionConfig, "t5_bias"): ("n_buckets", "max_distance", "bidirectional"),
    (RopeScaling, "none"): (),
    (RopeScaling, "linear"): ("factor",),
    (RopeScaling, "dynamic"): _SCALED,
    (RopeScaling, "yarn"): (*_SCALED, "beta_fast", "beta_slow", "attention_factor"),
    (RopeScaling, "llama3"): (*_SCALED, "low_freq_factor", "high_freq_factor"),
}
"""(part, kind) -> the fields that apply beside `kind`; all of them where a pair is not listed."""

SIZED: Mapping[type, tuple[str, ...]] = {
    AttentionConfig: ("mla",),
    FfnConfig: ("first_dense", "every", "d_dense"),
    NormConfig: ("gain",),
    ModelConfig: (
        *("vocab_padded_to", "d_embed", "embed_projection_bias", "distinct_blocks"),
        *("patches", "pooler", "classes", "extras"),
    ),
}
"""Part -> its fields that are sized and not run; they are written where they say something."""

_OPTIONAL = {
    AttentionConfig: {"softcap", "qk_norm", "sinks", *SIZED[AttentionConfig]},
    FfnConfig: {*SIZED[FfnConfig]},
    NormConfig: {"bias", "shared", *SIZED[NormConfig]},
    PositionConfig: {"scaling"},
    PatchesConfig: {"channels", "bias", "class_token"},
    ModelConfig: {field.name for field in fields(ModelConfig) if field.default is not MISSING},
}
"""Part -> the fields that may be left out of what is read: off, as their defaults say."""


def applying_fields(part: type, kind: object) -> tuple[str, ...]:
    """The field names of a config part that mean something for its kind."""
    chosen = _APPLYING.get((part, str(kind)))
    return _field_names(part) if chosen is None else ("kind", *chosen)


@lru_cache(maxsize=64)
def _field_names(part: Any) -> tuple[str, ...]:  # noqa: ANN401 - a class of config
    return tuple(field.name for field in fields(part))


def as_json(config: object) -> dict[str, Any]:
    """A config dataclass as plain JSON: {field: value}, parts nested, `in_` written `in`."""
    names = applying_fields(type(config), getattr(config, "kind", None))
    unsaid = set(unsaid_fields(config))
    values = {name: getattr(config, name) for name in names if name not in unsaid}
    if isinstance(config, ModelConfig):
        values["readout"] = reads_out(config)  # without a vocab there is none
    return {name.rstrip("_"): _plain(value) for name, value in values.items()}


def unsaid_fields(part: object) -> list[str]:
    """The fields of a part that are sized and not run, and say nothing here."""
    kind: type = type(part)
    sized = _defaults_of_sized(kind)
    return [name for name, default in sized if getattr(part, name) == default]


@lru_cache(maxsize=64)
def _defaults_of_sized(part: Any) -> tuple[tuple[str, object], ...]:  # noqa: ANN401 - the same
    sized = SIZED.get(part, ())
    return tuple((field.name, field.default) for field in fields(part) if field.name in sized)


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [as_json(entry) for entry in value]
    return as_json(value) if is_dataclass(value) else value


def from_json(raw: Mapping[str, Any]) -> ModelConfig:
    """The ModelConfig that `as_json` wrote; a ConfigError names the first misfit."""
    return config_rules.check(_read(ModelConfig, raw, ()))


def _read(part: type[T], raw: object, place: Place) -> T:
    if not isinstance(raw, Mapping):
        raise _misfit(place, "an object", raw)
    if "kind" in raw:
        _value(get_type_hints(part)["kind"], raw["kind"], (*place, "kind"))
    names = {name.rstrip("_"): name for name in applying_fields(part, raw.get("kind"))}
    for key in sorted(set(raw) ^ set(names)):
        if key not in names or key not in _OPTIONAL.get(part, ()):
            raise _misfit((*place, key), "present" if key in names else "absent", raw.get(key))
    hints = get_type_hints(part)
    return part(
        **{
            name: _value(hints[name], raw[key], (*place, key))
            for key, name in names.items()
            if key in raw
        }
    )


def _value(hint: object, raw: object, place: Place) -> object:
    if is_dataclass(hint) and isinstance(hint, type):
        return _read(hint, raw, place)
    if get_origin(hint) is Literal:
        if raw in get_args(hint):
            return raw
        raise _misfit(place, " | ".join(map(str, get_args(hint))), raw)
    if get_origin(hint) is tuple:
        return _entries(get_args(hint)[0], raw, place)
    if get_args(hint) and is_dataclass(get_args(hint)[0]):
        return None if raw is None else _value(get_args(hint)[0], raw, place)
    return _scalar(get_args(hint) or (hint,), raw, place)


def _entries(hint: object, raw: object, place: Place) -> tuple[object, ...]:
    if not isinstance(raw, list):
        raise _misfit(place, "a list", raw)
    return tuple(_value(hint, entry, (*place, at)) for at, entry in enumerate(raw))


def _scalar(kinds: tuple[type, ...], raw: object, place: Place) -> object:
    if type(raw) in kinds:
        return raw
    if float in kinds and type(raw) is int and abs(raw) < 1 << 53:
        return float(raw)
    raise _misfit(place, " or ".join(kind.__name__ for kind in kinds), raw)


def _misfit(place: Place, expected: str, got: object) -> ConfigError:
    where = ".".join(map(str, place)) or "the config"
    detail = f"{where} must be {expected}."
    return ConfigError(
        [Fault(code="config_rule", detail=detail, place=place, expected=expected, got=got)]
    )
