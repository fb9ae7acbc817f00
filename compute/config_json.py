"""A resolved config as JSON and back.

Only the fields that apply are written (`{"kind": "none"}` for a part that is off), and reading
is strict: every field that applies, of its type, and nothing else.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from compute import config_rules
from compute.config import (
    AttentionConfig,
    FfnConfig,
    ModelConfig,
    NormConfig,
    PositionConfig,
)
from compute.errors import ConfigError, Fault, Place

T = TypeVar("T")

_NOTHING_ELSE = {
    (AttentionConfig, "none"): (),
    (FfnConfig, "none"): (),
    (NormConfig, "none"): (),
    (PositionConfig, "none"): (),
    (PositionConfig, "sinusoidal"): (),
    (PositionConfig, "learned"): ("n_positions",),
    (PositionConfig, "rope"): ("theta", "rotary_dim", "pairing"),
    (PositionConfig, "alibi"): ("alibi_rule",),
}
"""(part, kind) -> the fields that apply beside `kind`; all of them where a pair is not listed."""


def applying_fields(part: type, kind: object) -> tuple[str, ...]:
    """The field names of a config part that mean something for its kind."""
    names = tuple(field.name for field in fields(part))
    chosen = _NOTHING_ELSE.get((part, str(kind)))
    return names if chosen is None else ("kind", *chosen)


def as_json(config: object) -> dict[str, Any]:
    """A config dataclass as plain JSON: {field: value}, parts nested, `in_` written `in`."""
    names = applying_fields(type(config), getattr(config, "kind", None))
    values = {name: getattr(config, name) for name in names}
    return {
        name.rstrip("_"): as_json(value) if is_dataclass(value) else value
        for name, value in values.items()
    }


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
        raise _misfit((*place, key), "present" if key in names else "absent", raw.get(key))
    hints = get_type_hints(part)
    return part(
        **{name: _value(hints[name], raw[key], (*place, key)) for key, name in names.items()}
    )


def _value(hint: object, raw: object, place: Place) -> object:
    if is_dataclass(hint) and isinstance(hint, type):
        return _read(hint, raw, place)
    if get_origin(hint) is Literal:
        if raw in get_args(hint):
            return raw
        raise _misfit(place, " | ".join(map(str, get_args(hint))), raw)
    return _scalar(get_args(hint) or (hint,), raw, place)


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
