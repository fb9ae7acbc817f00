"""docs/ten-requests.md: every request runs, and every number that is quoted is in its answer."""

import math
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient

from service.app import create_app
from service.settings import Settings

ROUNDING = 1e-5  # float32 through a few blocks, on kernels that round in another order

PAGE = (Path(__file__).parents[2] / "docs" / "ten-requests.md").read_text("utf-8")
*SECTIONS, ANSWERS = re.split(r"^## ", PAGE, flags=re.M)[1:]
NEXT = re.split(r"^(?=\d+\. )", ANSWERS.partition("\n```")[0], flags=re.M)[1:]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
STEP = re.compile(r"```sh\n(.*?)^```\n+```json\n(.*?)^```$", re.M | re.S)
CHANGED = re.compile(r"\d+\. Request (\d+)(, the second,|, the first,)? with `({.*?})`:", re.S)
FUNCTIONS = {name: getattr(math, name) for name in ("cos", "exp", "sin", "sqrt")} | {"max": max}

each_section = pytest.mark.parametrize("section", SECTIONS, ids=lambda text: text.split(".")[0])
each_answer = pytest.mark.parametrize("text", NEXT[:-1], ids=lambda text: text.split(".")[0])
each_text = pytest.mark.parametrize(
    "section",
    [*SECTIONS, *NEXT],
    ids=[f"{part}-{n}" for part in ("request", "next") for n in range(1, 11)],
)


def steps(section: str) -> list[tuple[Any, Any]]:
    """The (answer as shown, answer as found) of each request of a section."""
    return [(orjson.loads(shown), answer(curl)) for curl, shown in STEP.findall(section)]


@cache
def answer(curl: str) -> Any:  # noqa: ANN401 - plain JSON
    path, body = posted(curl)
    headers = {"content-type": "application/json"}
    response = TestClient(create_app(Settings())).post(path, content=body, headers=headers)
    assert response.status_code == 200, response.text
    return orjson.loads(response.content)


def posted(curl: str) -> tuple[str, str]:
    """The path and the body of a curl command."""
    command, flag, url, header, content_type, data, body = shlex.split(curl)
    assert (command, flag, header, data) == ("curl", "-s", "-H", "-d")
    assert content_type == "Content-Type: application/json"
    return url.removeprefix("http://127.0.0.1:8000"), body


def changed(text: str) -> Any:  # noqa: ANN401 - plain JSON
    """The answer to the request that an answer to `Next:` begins with."""
    stated = CHANGED.match(text)
    assert stated is not None
    number, which, change = stated.groups()
    curls = [curl for curl, _ in STEP.findall(SECTIONS[int(number) - 1])]
    assert (which is None) == (len(curls) == 1)
    curl = curls[which == ", the second,"]
    path, body = posted(curl)
    request = merged(orjson.loads(body), orjson.loads(change))
    response = TestClient(create_app(Settings())).post(path, json=request)
    assert response.status_code == 200, response.text
    return response.json()


def merged(value: Any, change: Any) -> Any:  # noqa: ANN401 - plain JSON
    """A change merged into a JSON value: objects key by key, all else replaced."""
    if not (isinstance(value, dict) and isinstance(change, dict)):
        return change
    return value | {key: merged(value.get(key), new) for key, new in change.items()}


def holds(found: object, shown: object) -> bool:
    """Whether an answer has what is shown: the keys of an object, all of a list of numbers, and
    each shown object of a list of objects."""
    if isinstance(shown, dict) and isinstance(found, dict):
        return all(key in found and holds(found[key], shown[key]) for key in shown)
    if isinstance(shown, list) and isinstance(found, list):
        if shown and isinstance(shown[0], dict):
            return all(any(holds(item, wanted) for item in found) for wanted in shown)
        return len(found) == len(shown) and all(map(holds, found, shown))
    if isinstance(shown, float) and isinstance(found, float):
        return math.isclose(found, shown, rel_tol=ROUNDING, abs_tol=ROUNDING)
    return found == shown


def parts(value: Any) -> Iterator[object]:  # noqa: ANN401 - plain JSON
    """A JSON value and everything in it."""
    yield value
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from parts(part)


def spans(section: str) -> list[str]:
    """What stands between backticks in the text before `Next:`."""
    text = BLOCK.sub("", section).partition("\nNext:")[0]
    return [span.replace("\n", " ") for span in re.findall("`([^`]+)`", text)]


def test_page_has_ten_requests_each_with_an_answer_and_something_to_try() -> None:
    assert [section.split(".")[0] for section in SECTIONS] == [str(n) for n in range(1, 11)]
    for section in SECTIONS:
        languages = [language for language, _ in BLOCK.findall(section)]
        assert languages == ["sh", "json"] * len(steps(section)) != []
        assert section.count("\nNext: ") == 1


@each_section
def test_request_is_answered_as_shown(section: str) -> None:
    for shown, found in steps(section):
        assert holds(found, shown), [
            found["tensors"].get(name, "absent") for name in shown.get("tensors", {})
        ]


@each_text
def test_arithmetic_of_the_text_is_right(section: str) -> None:
    for left, right in (span.split(" = ") for span in spans(section) if " = " in span):
        assert holds(float(eval(left, {}, FUNCTIONS)), float(right)), left


@each_section
def test_numbers_of_the_text_are_in_the_answer(section: str) -> None:
    found = [part for _, answered in steps(section) for part in parts(answered)]
    assert not missing(section, found)


def missing(text: str, found: list[object]) -> list[str]:
    """The numbers between backticks in a text that are not among what was found."""
    numbers = [span for span in spans(text) if re.match(r"[-\d\[]", span) and " = " not in span]
    return [
        number for number in numbers if not any(holds(part, orjson.loads(number)) for part in found)
    ]


def test_every_next_is_answered() -> None:
    assert [text.split(".")[0] for text in NEXT] == [str(n) for n in range(1, 11)]


@each_answer
def test_numbers_of_an_answer_are_those_of_the_changed_request(text: str) -> None:
    found = list(parts(changed(text)))
    assert not missing(text, found)
    for reason in re.findall("`(not [^`]+)`", text):
        assert " ".join(reason.split()) in found


def test_answers_name_the_requests_they_change() -> None:
    assert [CHANGED.match(text)[1] for text in NEXT[:-1]] == list("113456789")  # type: ignore[index]


def test_answer_about_lengths_quotes_the_first_row_after_each_block() -> None:
    told = re.findall(r"`(\d\.\d+)`", NEXT[8])
    tensors = changed(NEXT[8])["tensors"]
    lengths = [tensors[f"blocks.{i}.resid_post"]["summary"]["norm"][0] for i in range(4)]
    assert holds(lengths, list(map(float, told)))


def test_loop_of_the_last_answer_prints_what_stands_below_it(
    pasted: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    (_, code), (_, printed) = BLOCK.findall(ANSWERS)
    done = pasted(code)
    assert done.stderr == ""
    shown, found = rows(printed), rows(done.stdout)
    assert holds(found, shown)
    with_r = answer(STEP.findall(SECTIONS[9])[0][0])["next_token"]["logit"]
    assert not missing(ANSWERS.rpartition("```")[2], [*parts(shown), with_r])
    assert [row[:2] for row in shown if row[2] != "R"] == [[0, 1], [1, 2]]


def rows(lines: str) -> list[list[object]]:
    """Lines of `block head letter logit`, numbers as such."""
    return [
        [word if word.isalpha() else float(word) for word in line.split()]
        for line in lines.splitlines()
    ]
