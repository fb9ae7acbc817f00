"""Every call, and everything a request to it holds, changed in turn: refused in place, or run."""

import json
import re
import time
from collections.abc import Mapping
from typing import Any

import pytest
from starlette.testclient import TestClient

from door import calls, mutated
from door.case import JSON
from door.checks import Answer, check_place, check_silence, problem_of
from door.mutated import Form, Mutant

_SECONDS = 1.0
_AT_THE_END = re.compile(r"(/\d+)+$")


@pytest.fixture(scope="module")
def document(client: TestClient) -> str:
    return client.get("/openapi.json").text


@pytest.mark.parametrize("name", calls.ANSWERED)
def test_request_that_the_others_change_is_answered(client: TestClient, name: str) -> None:
    path, body = calls.ANSWERED[name]
    assert client.post(path, json=body).status_code == 200


@pytest.mark.parametrize("name", [*calls.ANSWERED, *calls.REFUSED])
def test_what_is_changed_is_refused_in_its_place_or_answered(
    client: TestClient, document: str, name: str
) -> None:
    path, base = {**calls.ANSWERED, **calls.REFUSED}[name]
    form = mutated.form(document, path)
    wrong: dict[str, str] = {}
    for mutant in mutated.mutants(base):
        try:
            _check(client, path, form, mutant)
        except AssertionError as error:
            wrong[repr(mutant)] = str(error)[:400]
    assert not wrong, f"{len(wrong)}: {json.dumps(wrong, indent=1)}"


def _check(client: TestClient, path: str, form: Form, mutant: Mutant) -> None:
    seconds, answer = _timed(client, path, mutant)
    for _ in range(2 if seconds > _SECONDS else 0):
        seconds = min(seconds, _timed(client, path, mutant)[0])
    assert seconds < _SECONDS, f"{seconds:.2f} s"
    if answer.status == 200:
        assert form.holds(mutant), "answered, though the document has no such form"
        json.loads(answer.content)
    else:
        _check_refusal(answer, form, mutant)


def _timed(client: TestClient, path: str, mutant: Mutant) -> tuple[float, Answer]:
    start = time.perf_counter()
    response = client.post(path, content=mutant.body, headers=dict(JSON))
    seconds = time.perf_counter() - start
    return seconds, Answer(response.status_code, response.headers, response.content)


def _check_refusal(answer: Answer, form: Form, mutant: Mutant) -> None:
    problem = problem_of(answer)
    assert 400 <= answer.status < 500, problem
    sent = json.loads(mutant.body)
    for fault in problem["errors"]:
        check_place(fault, sent)
    check_silence(answer, problem)
    ill_formed = problem["type"] == "/problems/invalid-request"
    in_place = any(_is_about(fault, mutant) for fault in problem["errors"])
    assert (ill_formed and in_place) or form.holds(mutant), problem


def _is_about(fault: Mapping[str, Any], mutant: Mutant) -> bool:
    """A fault at what was changed, inside it, or at the object that holds it; in a list anywhere:
    what stands first in a tensor says how long the others are."""
    changed = _AT_THE_END.sub("", mutant.pointer)
    pointer: str = fault["pointer"]
    return f"{pointer}/".startswith(f"{changed}/") or pointer == changed.rpartition("/")[0]
