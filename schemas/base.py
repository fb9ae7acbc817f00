"""What all requests and answers share: strict, frozen, nothing unknown."""

import re
from collections.abc import Callable, Collection, Iterator
from difflib import get_close_matches
from typing import Annotated, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from compute.errors import Fault
from schemas.faulty import refuse

_LARGEST_INDEX = 1 << 31
_MOST_INDICES = 8192
_MOST_NEAR, _LIKENESS = 3, 0.6
_UNKNOWN_KEYS = 16  # are told one by one

LONGEST_NAME = 128
"""Characters."""

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]


class Asked(BaseModel):
    """Part of a request: no unknown keys, no coercion, no change after."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _few_keys(cls, raw: object) -> object:
        """A flood of unknown keys is one fault, not one each."""
        return at_most(len(cls.model_fields) + _UNKNOWN_KEYS)(raw)


class Answered(BaseModel):
    """Part of an answer: every key is there, none has a default."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _indices(raw: object) -> list[int]:
    """The raw list itself; one error for all its faults, where Pydantic would make one each."""
    if not isinstance(raw, list):
        refuse([Fault(code="list_type", detail="A list of whole numbers is due here.")])
    elif not 1 <= len(raw) <= _MOST_INDICES:
        detail = f"From 1 to {_MOST_INDICES} indices are due here."
        refuse([Fault(code="wrong_length", detail=detail, got=len(raw))])
    elif set(map(type, raw)) != {int} or max(map(abs, raw)) > _LARGEST_INDEX:
        refuse(_index_faults(raw))
    return cast(list[int], raw)


def _index_faults(raw: list[object]) -> Iterator[Fault]:
    for at, index in enumerate(raw):
        if type(index) is not int:
            yield Fault(code="wrong_type", detail="A whole number is due here.", place=(at,))
        elif abs(index) > _LARGEST_INDEX:
            detail = "An index is from -2^31 to 2^31."
            yield Fault(code="out_of_range", detail=detail, place=(at,))


_INDICES = {
    "type": "array",
    "items": {"type": "integer", "minimum": -_LARGEST_INDEX, "maximum": _LARGEST_INDEX},
    "minItems": 1,
    "maxItems": _MOST_INDICES,
}
Indices = Annotated[list[int], PlainValidator(_indices), WithJsonSchema(_INDICES)]
"""Entries of an axis."""


def at_most(most: int) -> Callable[[object], object]:
    """A validator that refuses a longer object before anything in it is looked at."""

    def check(raw: object) -> object:
        if isinstance(raw, dict) and len(raw) > most:
            rule = f"There are at most {most} keys here."
            raise PydanticCustomError("too_many_keys", "{rule}", {"rule": rule, "got": len(raw)})
        return raw

    return check


def of_form(pattern: str, rule: str) -> Callable[[str], str]:
    """A validator that refuses a text of another form, and says the rule in words."""
    form = re.compile(pattern)

    def check(text: str) -> str:
        if form.fullmatch(text) is None:
            raise PydanticCustomError("wrong_form", "{rule}", {"rule": rule})
        return text

    return check


def known(names: Collection[str], code: str, detail: str) -> Callable[[str], str]:
    """A validator that refuses a name that is not known, and tells those near it first."""

    def check(name: str) -> str:
        if name in names:
            return name
        longer = [each for each in names if each.startswith(name)]
        like = get_close_matches(name, names, _MOST_NEAR, _LIKENESS)
        near = list(dict.fromkeys([*longer, *like]))[:_MOST_NEAR]
        told = f" Near it: {', '.join(near)}." if near else ""
        rest = [each for each in names if each not in near]
        refuse([Fault(code=code, detail=detail + told, expected=[*near, *rest])])
        return name

    return check


def spread(*names: str) -> Callable[[object], object]:
    """A validator that writes true or false for an object of booleans as that for each name."""

    def expand(raw: object) -> object:
        return dict.fromkeys(names, raw) if isinstance(raw, bool) else raw

    return expand


def exactly_one(model: BaseModel, *names: str) -> None:
    """Raise one error unless exactly one of the optional keys is given."""
    given = [name for name in names if getattr(model, name) is not None]
    if len(given) != 1:
        rule = f"Give exactly one of {', '.join(names)}."
        raise PydanticCustomError("exactly_one", "{rule}", {"rule": rule})
