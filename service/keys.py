"""Which keys and names a request has at a place, for a reader who misspelt one."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Union, cast, get_args, get_origin

from pydantic import BaseModel

from compute.checkpoints.fields import ACTIVATIONS
from schemas.packed import Packed
from schemas.tensors import Posted

_LONGEST = 64  # characters of a key that are compared
_MOST_HOMES = 3
_A_SLIP = 0.85  # so much alike (tensor, tensors) it is a slip, not a key of elsewhere

_GATED = "with ffn.kind = gated"
_ACTIVATIONS: Mapping[str, str] = {
    **ACTIVATIONS,
    "gelu_erf": "gelu",
    "relu_squared": "relu2",
    "squared_relu": "relu2",
    "none": "identity",
    "swiglu": f"silu {_GATED}",
    "geglu": f"gelu or gelu_tanh {_GATED}",
    "reglu": f"relu {_GATED}",
}
"""An activation as other libraries call it -> as a config does."""


def of_others(location: Sequence[str | int], sent: object) -> str:
    """What a name of another library is called here; empty for one that is not known."""
    if not location or location[-1] != "activation" or not isinstance(sent, str):
        return ""
    name = sent[:_LONGEST].lower()
    ours = _ACTIVATIONS.get(name)
    if ours is None:
        return ""
    return f" It is written {ours} here." if name == ours else f" {name} is {ours} here."


def advice(model: type[BaseModel], location: Sequence[str | int]) -> str:
    """Where an unknown key belongs, or the keys near it, or all there are at its place.

    Empty where no keys are known.
    """
    *parents, wrong = location
    keys, written = _keys(_at(model, parents)), str(wrong)[:_LONGEST]
    if not keys:
        return ""
    homes = sorted(_homes(model, written), key=len)
    if homes and not get_close_matches(written, keys, cutoff=_A_SLIP):
        return f" It belongs at {' or '.join(homes[:_MOST_HOMES])}."
    if "." in written and "tensors" in keys:
        return " Tensors by their names belong in tensors."
    near = get_close_matches(written, keys, n=3)
    return f" Near it: {', '.join(near)}." if near else f" The keys here: {', '.join(keys)}."


def _homes(model: type[BaseModel], key: str, above: str = "") -> Iterator[str]:
    """The places of a key, as pointers, in the objects of a request that have fixed keys."""
    if issubclass(model, Packed):
        return
    for name, field in model.model_fields.items():
        at = f"{above}/{field.alias or name}"
        if key == (field.alias or name):
            yield at
        for inner in filter(_is_model, _objects(field.annotation, listed=False)):
            yield from _homes(cast(type[BaseModel], inner), key, at)


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


def _objects(annotation: object, *, listed: bool = True) -> Iterator[object]:
    """The models and the objects of free names inside a type: of an optional one, of a list's
    where those are looked into."""
    if isinstance(annotation, Posted):
        yield annotation.packed
    elif get_origin(annotation) is dict or _is_model(annotation):
        yield annotation
    elif get_origin(annotation) in (Union, UnionType, Annotated, *([list] if listed else [])):
        for inner in get_args(annotation):
            yield from _objects(inner, listed=listed)


def _is_model(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
