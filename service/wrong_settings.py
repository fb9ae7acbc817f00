"""What the command line says of settings that cannot be read, or that are none."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from service.settings import PREFIX, Settings, unknown_settings

_KINDS: Mapping[object, str] = MappingProxyType(
    {int: "a whole number", float: "a number", bool: "true or false"}
)


def told(error: ValidationError) -> Iterator[str]:
    """A sentence for each setting that cannot be read: which, and what it may be."""
    for found in error.errors(include_input=False, include_url=False):
        name = str(found["loc"][0])
        yield f"{PREFIX}{name.upper()} must be {_rule(Settings.model_fields[name], found)}."


def unknown(environment: Iterable[str]) -> Iterator[str]:
    """A sentence for each name that looks like a setting and is none, with the nearest."""
    for name in unknown_settings(environment):
        close = get_close_matches(name[len(PREFIX) :].lower(), Settings.model_fields, n=1)
        nearest = f" Nearest: {PREFIX}{close[0].upper()}." if close else ""
        yield f"{name} is no setting; it does nothing.{nearest}"


def _rule(field: FieldInfo, found: ErrorDetails) -> str:
    """What the values of a setting may be; what its own check says, where that refused it."""
    if get_origin(field.annotation) is tuple:
        return "a JSON list, where it begins as one"
    if found["type"] == "value_error":
        return str(found.get("ctx", {}).get("error")).removeprefix("must be ")
    if field.annotation in _KINDS:
        return _KINDS[field.annotation] + _bounds(field)
    words = [word for word in get_args(field.annotation) if isinstance(word, str)]
    return f"one of {', '.join(words)}" if words else _message(found)


def _bounds(field: FieldInfo) -> str:
    least = next((f"from {x.ge}" for x in field.metadata if isinstance(x, Ge)), "")
    above = next((f"above {x.gt}" for x in field.metadata if isinstance(x, Gt)), "")
    most = next((f"to {x.le}" for x in field.metadata if isinstance(x, Le)), "")
    words = [least, above, most or ("on" if least else "")]
    return "".join(f" {word}" for word in words if word)


def _message(found: ErrorDetails) -> str:
    return f"readable: {found['msg']}".rstrip(".")
