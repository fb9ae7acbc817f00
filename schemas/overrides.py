"""Changes of a config: what a request says over what a preset says."""

from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel

from compute import config
from compute.config_json import applying_fields
from schemas.config import AttentionAsked, ConfigAsked, FfnAsked, NormAsked, PositionAsked

Part = TypeVar("Part", bound=BaseModel)

_RESOLVED: dict[type[BaseModel], type] = {
    AttentionAsked: config.AttentionConfig,
    FfnAsked: config.FfnConfig,
    NormAsked: config.NormConfig,
    PositionAsked: config.PositionConfig,
}
_NEED_VOCAB = {"tied", "unembed_bias", "final_norm"}


def merged(base: Part, changes: Part) -> Part:
    """The base with what the changes say: field by field, parts within parts.

    Another kind of a part keeps of the base what means something for it; without a vocab goes
    what belongs to a readout.
    """
    values = _kept(base, changes)
    for name in changes.model_fields_set:
        old, new = values.get(name), getattr(changes, name)
        both = isinstance(old, BaseModel) and isinstance(new, BaseModel)
        values[name] = merged(old, new) if both else new
    return type(base).model_construct(_fields_set=set(values), **values)


def _kept(base: BaseModel, changes: BaseModel) -> dict[str, Any]:
    """The base's own fields that still mean something after the changes."""
    names = set(base.model_fields_set)
    if type(base) in _RESOLVED and "kind" in changes.model_fields_set:
        names &= {*applying_fields(_RESOLVED[type(base)], getattr(changes, "kind", None))}
    if isinstance(changes, ConfigAsked) and "vocab" in changes.model_fields_set:
        names -= _NEED_VOCAB if changes.vocab is None else set()
    return {name: getattr(base, name) for name in names}


def changed(base: BaseModel, changes: BaseModel, prefix: str = "") -> Iterator[str]:
    """The fields said to be otherwise than in the base, in the config's order: `norm.placement`."""
    for name, field in type(changes).model_fields.items():
        if name not in changes.model_fields_set:
            continue
        old, new = getattr(base, name), getattr(changes, name)
        written = prefix + (field.alias or name)
        if isinstance(old, BaseModel) and isinstance(new, BaseModel):
            yield from changed(old, new, f"{written}.")
        elif old != new:
            yield written
