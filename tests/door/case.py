"""A bad request, what it is refused with, and how one is written in a line of a table."""

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack

MARK = "zQ7marker"
"""Stands for any text that is sent: no answer repeats it, but for pointers, which name keys."""

NUMBER = 73.51907
"""Stands for any number that is sent and is not at fault: no answer repeats it."""

JSON = {"Content-Type": "application/json"}
Faults = tuple[tuple[str, str], ...]
"""(pointer, code) of each fault, in any order."""

Sent = bytes | Iterator[bytes]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Case:
    """A request that is refused with a problem and these faults, all of them.

    says: words of the first fault's detail (of the problem's where it has no faults).
    more: whether more faults than these may be there. wire: the server itself refuses it, so it
    is sent over a socket alone.
    """

    name: str
    problem: str
    faults: Faults = ()
    says: str = ""
    more: bool = False
    body: Callable[[], Sent] = bytes
    method: str = "POST"
    path: str = "/v1/trace"
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)
    wire: bool = False

    def __repr__(self) -> str:
        return f"<{self.name}>"


@dataclass(frozen=True, slots=True)
class Raw:
    """JSON text that stands in a request as it is."""

    text: str


class More(TypedDict, total=False):
    """Fields of a case that few of them need."""

    faults: Faults
    more: bool


class _Gone:
    """A change that takes a key away."""


GONE = _Gone()

CONFIG: dict[str, Any] = {"d_model": 4, "attention": {"n_heads": 2}}
GOOD: dict[str, Any] = {
    "model": {"config": CONFIG},
    "input": {"tensor": [[NUMBER, 2, 3, 4], [5, 6, 7, 8]]},
}
"""A tensor of two positions for a block of two heads."""

TOKENS: dict[str, Any] = {
    "model": {"config": {**CONFIG, "vocab": 5}},
    "input": {"token_ids": [0, 1, 4]},
}
"""Three token ids of a vocabulary of five."""

LETTERS: dict[str, Any] = {"model": {"name": "letter-sort"}, "input": {"text": "CAB"}}
"""A shipped model with a tokenizer of three letters."""

EDIT: dict[str, Any] = {"tensor": "blocks.0.attn.W_O", "where": {"head": [1]}, "op": "zero"}


def asked(
    name: str,
    changes: Mapping[str, object],
    faults: str | Mapping[str, str],
    problem: str = "invalid-request",
    *,
    base: Mapping[str, object] = GOOD,
    path: str = "/v1/trace",
    says: str = "",
    more: bool = False,
) -> Case:
    """A good request with changes by pointer; one fault's code stands for the last of them."""
    placed = {list(changes)[-1]: faults} if isinstance(faults, str) else faults
    return Case(
        name=name,
        problem=problem,
        faults=tuple(placed.items()),
        says=says,
        more=more,
        path=path,
        body=lambda: encoded(changed(base, changes)),
    )


def text(
    name: str,
    body: str | bytes,
    says: str = "",
    problem: str = "malformed-json",
    **more: Unpack[More],
) -> Case:
    """A body written out."""
    raw = body.encode() if isinstance(body, str) else body
    return Case(name=name, problem=problem, says=says, body=lambda: raw, **more)


def changed(base: Mapping[str, object], changes: Mapping[str, object]) -> object:
    """A request with other values at pointers; objects on the way are made, lists end with new."""
    root: dict[str, Any] = {"": copy.deepcopy(dict(base))}
    for pointer, value in changes.items():
        *parents, last = ["", *map(unescaped, pointer.split("/")[1:])]
        here: Any = root
        for part in parents:
            here = here[int(part)] if isinstance(here, list) else here.setdefault(part, {})
        if value is GONE:
            del here[int(last) if isinstance(here, list) else last]
        elif isinstance(here, list):
            here[int(last) : int(last) + 1] = [copy.deepcopy(value)]
        else:
            here[last] = copy.deepcopy(value)
    return root[""]


def encoded(request: object) -> bytes:
    """A request as JSON, with raw texts as they are."""
    raws: list[str] = []

    def hold(value: object) -> str:
        assert isinstance(value, Raw), value
        raws.append(value.text)
        return f"<raw {len(raws) - 1}>"

    written = json.dumps(request, default=hold)
    for at, raw in enumerate(raws):
        written = written.replace(f'"<raw {at}>"', raw)
    return written.encode()


def unescaped(part: str) -> str:
    """A part of a JSON Pointer as the key it names."""
    return part.replace("~1", "/").replace("~0", "~")
