"""Which keys a request has at a place, for a reader who misspelt one."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Union, get_args, get_origin

from pydantic import BaseModel

from schemas.tensors import Posted

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
    """The models that may stand at a place; the name of a union's member, there, is no key."""
    here: list[object] = [model]
    for part in parents:
        if isinstance(part, str):
            here = [found for one in here for found in _below(one, part)] or here
    return [found for found in here if isinstance(found, type)]


def _below(one: object, part: str) -> Iterator[object]:
    """What may stand under a key of a model, or under any name."""
    if not isinstance(one, type):
        yield from _objects(get_args(one)[1])
    elif issubclass(one, BaseModel) and part in one.model_fields:
        field = one.model_fields[part]
        for annotation in (field.annotation, *field.metadata):
            yield from _objects(annotation)


def _objects(annotation: object) -> Iterator[object]:
    """The models and the objects of free names inside a type: of an optional one, of a list's."""
    if isinstance(annotation, Posted):
        yield annotation.packed
    elif get_origin(annotation) is dict or _is_model(annotation):
        yield annotation
    elif get_origin(annotation) in (Union, UnionType, Annotated, list):
        for inner in get_args(annotation):
            yield from _objects(inner)


def _is_model(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
