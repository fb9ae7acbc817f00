"""Problems after RFC 9457: the kinds there are, and how one is written down.

A problem says what is wrong with a request without repeating the request, in 16 KiB at most.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast
from uuid import uuid4

import orjson
from pydantic import JsonValue

from compute.errors import Fault, Place
from schemas.problems import Problem, ProblemFault
from service._problem_kinds import KINDS, Kind

__all__ = ["KINDS", "MEDIA_TYPE", "MOST_BYTES", "Kind", "Refusal", "encode", "pointer", "problem"]

MEDIA_TYPE = "application/problem+json"
MOST_BYTES = 16 * 1024
_MOST_KEY, _MOST_POINTER, _MOST_DETAIL = 128, 512, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What is to be said: which kind of problem, why, where, and with which headers.

    `total` counts the faults where they are not all listed.
    """

    code: str
    detail: str = ""
    faults: Sequence[Fault] = ()
    total: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, object] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return KINDS[self.code].status


def pointer(place: Place) -> str:
    """The JSON Pointer (RFC 6901) of a place; of its nearest parent where a key is very long."""
    written = ""
    for part in place:
        key = str(part).replace("~", "~0").replace("/", "~1")
        if len(key) > _MOST_KEY or len(written) + len(key) >= _MOST_POINTER:
            break
        written += f"/{key}"
    return written


def problem(refusal: Refusal, most: int) -> Problem:
    """The problem of a refusal, with `most` of its faults."""
    kind = KINDS[refusal.code]
    total = max(refusal.total, len(refusal.faults))
    body: Problem = {
        "type": kind.type,
        "title": kind.title,
        "status": kind.status,
        "detail": refusal.detail or _summary(kind, refusal.faults, total),
        "instance": f"urn:uuid:{uuid4()}",
        "errors_total": total,
        "errors": [_listed(fault) for fault in refusal.faults[:most]],
    }
    return cast(Problem, {**body, **{key: _exact(m) for key, m in refusal.members.items()}})


def encode(body: Problem) -> bytes:
    """A problem as JSON, cut down to MOST_BYTES: fewer faults first, then fewer words."""
    encoded = b""
    for shorter in _ever_shorter(body):
        encoded = orjson.dumps(shorter, default=str, option=orjson.OPT_SERIALIZE_NUMPY)
        if len(encoded) <= MOST_BYTES:
            break
    return encoded


def _summary(kind: Kind, faults: Sequence[Fault], total: int) -> str:
    if total == 1:
        return faults[0].detail
    return f"{kind.title}: {total} faults." if faults else f"{kind.title}."


def _listed(fault: Fault) -> ProblemFault:
    listed: ProblemFault = {
        "pointer": pointer(fault.place),
        "code": fault.code,
        "detail": fault.detail,
    }
    if fault.expected is not None:
        listed["expected"] = _exact(fault.expected)
    if fault.got is not None:
        listed["got"] = _exact(fault.got)
    return listed


def _exact(value: object) -> JsonValue:
    """The value as JSON; a whole number beyond 2^53 as a string, which keeps its digits."""
    if isinstance(value, list | tuple):
        return [_exact(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _exact(inner) for key, inner in value.items()}
    beyond = type(value) is int and abs(value) > 2**53
    return cast(JsonValue, str(value) if beyond else value)


def _ever_shorter(body: Problem) -> Iterator[Problem]:
    yield body
    count = len(body["errors"])
    while count > 1:
        count //= 2
        yield cast(Problem, {**body, "errors": body["errors"][:count]})
    bare = [_bare(fault) for fault in body["errors"][:1]]
    plain = {**body, "errors": bare, "detail": body["detail"][:_MOST_DETAIL]}
    yield cast(Problem, plain)
    yield cast(Problem, {key: plain[key] for key in Problem.__annotations__})


def _bare(fault: ProblemFault) -> ProblemFault:
    return {
        "pointer": fault["pointer"],
        "code": fault["code"],
        "detail": fault["detail"][:_MOST_DETAIL],
    }
