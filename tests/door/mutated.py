"""Good requests with one thing wrong: each value in turn becomes another, each key goes or comes.

Whether what is made is well-formed is asked of the OpenAPI document, by another reader of JSON
schemas than the service has.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema

from door.case import GONE, MARK, NUMBER, Raw, changed, encoded

_FIRST = 1
"""So many entries of a list are changed; the others are as the first."""

_ELSEWHERE = re.compile(r"/(model|style|input|clean|corrupted)$")
"""What stands below these is changed by the table."""

VALUES: tuple[object, ...] = (
    MARK, "", "x" * 200, "*", "blocks.99.attn.z", True, None, 0, -1, 2.5, (1 << 31) + 1, 10**30,
    1e300, Raw("1e400"), [], [[]], [MARK], [0, 0], [0] * 300, [[NUMBER]], {}, {MARK: 1},
    {"dtype": "float32", "shape": [2], "data": "AADAfwAAwH8="},
    {"dtype": "int64", "shape": [1 << 31] * 2, "data": "AAAA"},
)  # fmt: skip
"""Kinds, bounds and forms, one of which is wrong wherever it stands."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A request with a change at a pointer; value: what stands there now."""

    pointer: str
    value: object
    body: bytes

    def __repr__(self) -> str:
        value = self.value.text if isinstance(self.value, Raw) else repr(self.value)
        return f"{self.pointer} = {value[:60]}"


def mutants(base: Mapping[str, Any]) -> Iterator[Mutant]:
    """Each value of a request in turn as each of VALUES; each key gone; a key more."""
    for pointer, found in _nodes(base, ""):
        for value in VALUES:
            yield _mutant(base, pointer, value)
        if pointer:
            yield _mutant(base, pointer, GONE)
        if isinstance(found, dict):
            yield _mutant(base, f"{pointer}/{MARK}", 1)


def _mutant(base: Mapping[str, Any], pointer: str, value: object) -> Mutant:
    made: Any = value if not pointer else changed(base, {pointer: value})
    return Mutant(pointer, value, encoded(made))


def _nodes(value: object, pointer: str) -> Iterator[tuple[str, object]]:
    yield pointer, value
    if _ELSEWHERE.search(pointer):
        return
    inside: Iterator[tuple[object, object]] = iter(())
    if isinstance(value, dict):
        inside = iter(value.items())
    elif isinstance(value, list):
        inside = iter(list(enumerate(value))[:_FIRST])
    for key, inner in inside:
        yield from _nodes(inner, f"{pointer}/{key}")


@dataclass(frozen=True, slots=True)
class Form:
    """What the OpenAPI document says a body is."""

    validator: Any

    def holds(self, mutant: Mutant) -> bool:
        """Whether a request is well-formed: a number that ends in .0 is no whole number here."""
        too_large = isinstance(mutant.value, Raw)  # for float64
        return not too_large and bool(self.validator.is_valid(json.loads(mutant.body)))


@cache
def form(document: str, path: str) -> Form:
    """The form of the bodies that an address of an OpenAPI document takes."""
    whole = json.loads(document)
    body = whole["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    schema = {**body, "components": whole["components"]}
    return Form(_Validator(schema))


def _is_whole(_: object, value: object) -> bool:
    return type(value) is int


_Base = jsonschema.Draft202012Validator
_Validator = jsonschema.validators.extend(
    _Base, type_checker=_Base.TYPE_CHECKER.redefine("integer", _is_whole)
)
