"""Which keys a request has at a place, for a reader who misspelt one."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Union, get_args, get_origin

from pydantic import BaseModel

_LONGEST = 64  # characters of a key that are compared


def advice(model: type[BaseModel], location: Sequence[str | int]) -> str:
    """The keys near an unknown one, or all there are at its place; empty where none is known."""
    *parents, wrong = location
    keys = _keys(_at(model, parents))
    if not keys:
        return ""
    near = get_close_matches(str(wrong)[:_LONGEST], keys, n=3)
    return f" Near it: {', '.join(near)}." if near else f" The keys here: {', '.join(keys)}."


def of(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """The keys of the object that is due at a place; none where no object is."""
    return _keys(_at(model, location))


def _keys(models: Sequence[type[BaseModel]]) -> list[str]:
    return [field.alias or name for model in models for name, field in model.model_fields.items()]


def _at(model: type[BaseModel], parents: Sequence[str | int]) -> list[type[BaseModel]]:
    here = [model]
    for part in parents:
        if isinstance(part, str):
            fields = [one.model_fields[part] for one in here if part in one.model_fields]
            here = [found for field in fields for found in _models(field.annotation)]
    return here


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    """The request models inside a type: of an optional one, of a list's entries."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) in (Union, UnionType, Annotated, list, dict):
        for inner in get_args(annotation):
            yield from _models(inner)
