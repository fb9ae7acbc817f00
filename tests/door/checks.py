"""What every refusal is checked for, whichever way it came."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from door import binary
from door.case import JSON, MARK, NUMBER, Case, unescaped
from schemas.problems import LimitProblem, Problem, UnknownModelProblem
from service.problems import KINDS, MEDIA_TYPE, MOST_BYTES

ORIGIN = "http://page.example"
GOOD_REQUEST = json.dumps(
    {"model": {"name": "letter-sort"}, "input": {"text": "CABBAC"}, "select": ["*", "head_out"]}
).encode()

_SCHEMAS: Mapping[str, TypeAdapter[Any]] = {
    "limit": TypeAdapter(LimitProblem),
    "models": TypeAdapter(UnknownModelProblem),
    "": TypeAdapter(Problem),
}
_RAW = re.compile(
    r"Input should|should (be|have|match)|Extra inputs|Field required|validation|valid "
    r"(string|integer|number|list|dictionary|boolean)|pydantic|jiter|orjson|numpy|Traceback|\{|\}"
)
"""Words of the libraries underneath: no reader asked for them."""
_SHOWN = '"where": {"head": [...]}'
"""Braces that a detail writes on purpose, to show what to send."""


_BEFORE_THE_ORIGIN = {"/problems/malformed-http", "/problems/head-too-large"}
"""Refused perhaps before the header Origin was read."""


class Answer(NamedTuple):
    """A response as it came; headers by their lower-case names."""

    status: int
    headers: Mapping[str, str]
    content: bytes


def check(case: Case, answer: Answer) -> None:
    """Assert that a refusal is the one expected, well-formed, located and silent."""
    problem = problem_of(answer)
    assert (answer.status, problem["type"]) == (
        KINDS[case.problem].status,
        f"/problems/{case.problem}",
    ), problem
    assert 400 <= answer.status < 500
    _check_faults(case, problem)
    check_silence(answer, problem)
    said = [fault["detail"] for fault in problem["errors"]] or [problem["detail"]]
    assert case.says in said[0], problem


def problem_of(answer: Answer) -> dict[str, Any]:
    """The problem of an answer, of the documented schema."""
    assert answer.headers.get("content-type") == MEDIA_TYPE, (answer.status, answer.content[:200])
    assert len(answer.content) <= MOST_BYTES
    problem: dict[str, Any] = json.loads(answer.content, parse_constant=_no_constant)
    allowed = {ORIGIN, None} if problem["type"] in _BEFORE_THE_ORIGIN else {ORIGIN}
    assert answer.headers.get("access-control-allow-origin") in allowed
    kind = next(key for key in _SCHEMAS if not key or key in problem)
    _SCHEMAS[kind].validate_python(problem, strict=True)
    assert problem["status"] == answer.status
    assert len(problem["errors"]) <= problem["errors_total"]
    return problem


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def _check_faults(case: Case, problem: dict[str, Any]) -> None:
    got = sorted((fault["pointer"], fault["code"]) for fault in problem["errors"])
    if case.more:
        assert set(case.faults) <= set(got), problem["errors"]
    else:
        assert got == sorted(case.faults), problem["errors"]
        assert problem["errors_total"] == len(got) or got[0][1] == "too_many_faults"
    if any(pointer for pointer, _ in got):
        body = case.body()
        assert isinstance(body, bytes)  # it has places
        in_json = case.headers.get("Content-Type") == JSON["Content-Type"]
        sent = json.loads(body) if in_json else binary.as_json(body)
        for fault in problem["errors"]:
            check_place(fault, sent)


def check_place(fault: dict[str, Any], sent: object) -> None:
    """A pointer leads somewhere; one to what is missing leads to the object that lacks it."""
    here: Any = sent
    parts = [unescaped(part) for part in fault["pointer"].split("/")[1:]]
    while parts and _holds(here, parts[0]):
        here = here[int(parts[0])] if isinstance(here, list) else here[parts[0]]
        parts.pop(0)
    absent_is_the_fault = fault["code"] in ("missing", "config_rule") and isinstance(here, dict)
    assert not parts or absent_is_the_fault, fault


def _holds(here: object, part: str) -> bool:
    if isinstance(here, list):
        return part.isdigit() and int(part) < len(here)
    return isinstance(here, dict) and part in here


def check_silence(answer: Answer, problem: dict[str, Any]) -> None:
    """Nothing that was sent is repeated, and no library underneath speaks."""
    faults = [{**fault, "pointer": "", "got": _told(fault)} for fault in problem["errors"]]
    said = json.dumps([{**problem, "errors": faults}, dict(answer.headers)])
    assert MARK.lower() not in said.lower(), problem
    assert str(NUMBER) not in said, problem
    for detail in (*(fault["detail"] for fault in faults), problem["detail"]):
        assert detail[-1] in ".?", detail
        assert not _RAW.search(detail.replace(_SHOWN, "")), detail


def _told(fault: Mapping[str, Any]) -> object:
    """What came, as a fault tells it, unless it is a number or a shape: those may be told."""
    got = fault.get("got")
    return None if isinstance(got, int | float | list) else got
