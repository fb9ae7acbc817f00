"""What Pydantic found wrong, as faults: located, in our words, repeating nothing of the input."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from compute.errors import Fault, Place
from schemas.binary import Binary
from schemas.packed import Packed
from service import keys

MOST_READ = 20_000
"""Beyond so many errors they are counted, not read: each costs memory once more."""

_LONGEST, _MOST_NEAR = 64, 2  # of what is sent that is looked at, and of what is near it
_CHOICE = re.compile(r"'([^']*)'")

_OBJECT, _LIST = "An object is due here.", "A list is due here."
_NOT_VALID = "This value is not valid here."
DETAILS: Mapping[str, str] = MappingProxyType(
    {
        "extra_forbidden": "There is no such key here.",
        "model_type": _OBJECT,
        "model_attributes_type": _OBJECT,
        "dict_type": _OBJECT,
        "mapping_type": _OBJECT,
        "list_type": _LIST,
        "tuple_type": _LIST,
        "string_type": "A string is due here.",
        "int_type": "A whole number is due here.",
        "int_from_float": "A whole number is due here.",
        "float_type": "A number is due here.",
        "finite_number": "A finite number is due here.",
        "bool_type": "true or false is due here.",
        "none_required": "null is due here.",
        "union_tag_invalid": "No kind of this name is known here.",
        "bytes_invalid_encoding": _NOT_VALID,
        "literal_error": "One of {expected} is due here.",
        "greater_than_equal": "A number of at least {ge} is due here.",
        "greater_than": "A number above {gt} is due here.",
        "less_than_equal": "A number of at most {le} is due here.",
        "less_than": "A number below {lt} is due here.",
        "too_short": "At least {min_length} entries are due here.",
        "too_long": "At most {max_length} entries are due here.",
        "string_too_short": "A string of at least {min_length} characters is due here.",
        "string_too_long": "A string of at most {max_length} characters is due here.",
        "union_tag_not_found": "The key that says which kind this is, is needed.",
    }
)
"""Pydantic's name of a rule -> what a client is told, filled in from the rule's context."""

_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
_BOUNDS |= {"min_length": "at least", "max_length": "at most", "multiple_of": "a multiple of"}
_PACKED = {*Packed.model_fields}
_KINDS = {str: "string", list: "list", dict: "object", type(None): "null", Binary: "tensor"}


def of_validation(
    error: ValidationError, body: object, model: type[BaseModel]
) -> tuple[list[Fault], int]:
    """The faults of a body that should be a model, each once, and how many there are."""
    count = error.error_count()
    if count > MOST_READ:
        return [Fault(code="too_many_faults", detail=f"There are {count} faults.")], count
    every = (
        fault
        for details in error.errors(include_url=False)
        for fault in _faults(details, body, model)
    )
    found = list(islice(every, MOST_READ))
    once = {(fault.place, fault.code, fault.detail): fault for fault in reversed(found)}
    faults = list(reversed(once.values()))
    return faults, len(faults)


def _faults(details: ErrorDetails, body: object, model: type[BaseModel]) -> Iterator[Fault]:
    place = _place(details, body)
    context = details.get("ctx", {})
    inner = context.get("faults")
    if inner is None:
        yield Fault(
            code=details["type"],
            detail=_detail(details, context) + _advice(details, model),
            place=place,
            expected=_expected(context),
            got=_got(details, context),
        )
        return
    for fault in inner:  # a tensor's own faults, placed inside it
        yield replace(fault, place=(*place, *fault.place))


def _place(details: ErrorDetails, body: object) -> Place:
    """Where in the body; what Pydantic adds to that (names of union members, `[key]`) goes."""
    place: list[str | int] = []
    here: Any = body
    for part in details["loc"]:
        if _holds(here, part):
            here = here[part]
            place.append(part)
    return (*place, details["loc"][-1]) if details["type"] == "missing" else tuple(place)


def _holds(here: object, part: str | int) -> bool:
    if isinstance(here, dict):
        return part in here
    return isinstance(here, list) and isinstance(part, int) and 0 <= part < len(here)


def _detail(details: ErrorDetails, context: Mapping[str, object]) -> str:
    if details["type"] == "missing":
        return f"{details['loc'][-1]} is needed here."
    if details["type"] in DETAILS:
        return DETAILS[details["type"]].format_map(context) + _written(details)
    raised = context.get("error")
    if isinstance(raised, ValueError | AssertionError):
        return str(raised)
    if raised is not None:
        return _NOT_VALID
    message = details["msg"]
    return message if message.endswith(".") else f"{message}."


def _written(details: ErrorDetails) -> str:
    """How a whole number is written, where something like one was sent."""
    sent = details["input"]
    if details["type"] != "int_type" or isinstance(sent, bool):
        return ""
    if isinstance(sent, str):
        return " It is written in digits, without quotes: 131072."
    return " It is written without point and exponent." if isinstance(sent, float) else ""


def _advice(details: ErrorDetails, model: type[BaseModel]) -> str:
    if details["type"] == "model_type":
        names = keys.of(model, details["loc"])
        off = " An object with kind = none switches it off." if "kind" in names else ""
        return f" Its keys: {', '.join(names)}.{off}" if names else ""
    if details["type"] == "literal_error":
        return keys.of_others(details["loc"], details["input"]) or _near(details)
    return keys.advice(model, details["loc"]) if details["type"] == "extra_forbidden" else ""


def _near(details: ErrorDetails) -> str:
    """The choices that are like what was sent, which is not repeated."""
    sent, choices = details["input"], str(details.get("ctx", {}).get("expected", ""))
    if not isinstance(sent, str):
        return ""
    near = get_close_matches(sent[:_LONGEST], _CHOICE.findall(choices), _MOST_NEAR)
    return f" Near it: {', '.join(near)}." if near else ""


def _expected(context: Mapping[str, object]) -> object:
    bounds = [f"{words} {context[key]}" for key, words in _BOUNDS.items() if key in context]
    return context.get("expected") or context.get("expected_tags") or ", ".join(bounds) or None


def _got(details: ErrorDetails, context: Mapping[str, object]) -> object:
    """A number, true or false, a length or the word for a kind; no text that was sent."""
    told = context.get("got", context.get("actual_length"))
    sent = details["input"]
    if told is not None or details["type"] in ("missing", "extra_forbidden"):
        return told
    if isinstance(sent, int | float):
        return sent if abs(sent) <= 2**53 else None  # neither inf nor NaN is
    return _KINDS.get(type(sent)) if details["type"].endswith("_type") else None


def with_prefix(faults: Sequence[Fault], prefix: Place, inside: bool) -> list[Fault]:
    """The faults with their places under a prefix, or all at the prefix itself."""
    return [replace(fault, place=(*prefix, *fault.place) if inside else prefix) for fault in faults]


def in_bytes(faults: Sequence[Fault], body: object) -> list[Fault]:
    """The faults as they are, but for those of entries of a tensor that was sent as bytes.

    Bytes have no places inside: such a fault is at the `data` of base64, or where the tensor of a
    binary body stands, and names the entry in words.
    """
    return [_in_bytes(fault, body) for fault in faults]


def _in_bytes(fault: Fault, body: object) -> Fault:
    here: Any = body
    for depth, part in enumerate(fault.place):
        packed = isinstance(here, dict) and here.keys() == _PACKED
        if packed or isinstance(here, Binary):
            detail = f"Entry {list(fault.place[depth:])}: {fault.detail}"
            data = ("data",) if packed else ()
            return replace(fault, place=(*fault.place[:depth], *data), detail=detail)
        if not _holds(here, part):
            break
        here = here[part]
    return fault
