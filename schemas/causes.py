"""Which change of a config breaks a rule: a fault stands where the request says something."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, cast

from pydantic import BaseModel

from compute.errors import ConfigError, Fault, Place
from schemas import overrides
from schemas.config import ConfigAsked

_MOST_TRIED = 64


def at_changes(
    faults: Iterable[Fault], base: ConfigAsked, changes: ConfigAsked, owner: str
) -> Iterator[Fault]:
    """The faults of changes laid over a base; one of a field that was not sent stands at the
    change without which there is none. owner: whose the base is, in words."""
    tried = [_parts(field) for field in overrides.changed(base, changes)][:_MOST_TRIED]

    @cache
    def broken(path: tuple[str, ...]) -> set[Place]:
        """Where rules are broken without one of the changes."""
        return _broken(base, cast(ConfigAsked, _without(changes, path)))

    for fault in faults:
        misplaced = fault.code == "config_rule" and not says(changes, fault.place)
        others = tried if misplaced else []
        cause = next((path for path in others if fault.place not in broken(path)), None)
        if cause is None:
            yield fault
            continue
        own = f" {fault.place[-1]} is the {owner}'s." if says(base, fault.place) else ""
        yield replace(fault, place=cause, detail=fault.detail + own, expected=None, got=None)


def _parts(field: str) -> tuple[str, ...]:
    return tuple(field.split("."))


def _broken(base: ConfigAsked, changes: ConfigAsked) -> set[Place]:
    try:
        overrides.merged(base, changes).to_compute()
    except ConfigError as error:
        return {fault.place for fault in error.faults}
    return set()


def says(part: object, place: Place) -> bool:
    """Whether a config as asked for says the field at a place."""
    for key in place:
        if isinstance(part, BaseModel):
            name = _name(part, key)
            if name not in part.model_fields_set:
                return False
            part = getattr(part, name)
        elif isinstance(part, list) and isinstance(key, int) and key < len(part):
            part = part[key]
        else:
            return False
    return True


def _without(part: BaseModel, path: Sequence[str]) -> BaseModel:
    """The part without what it says at a path."""
    first, *rest = path
    values: dict[str, Any] = {name: getattr(part, name) for name in part.model_fields_set}
    said = values.pop(_name(part, first), None)
    if rest:
        values[_name(part, first)] = _without(said, rest)
    return type(part).model_construct(_fields_set=set(values), **values)


def _name(part: BaseModel, key: str | int) -> str:
    """A field's name by its key in JSON: `in_` by `in`."""
    fields = type(part).model_fields.items()
    return next((name for name, field in fields if (field.alias or name) == key), "")
