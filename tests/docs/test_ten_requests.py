"""docs/ten-requests.md: every request runs, and every number that is quoted is in its answer."""

import math
import re
import shlex
from collections.abc import Iterator
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
SECTIONS = re.split(r"^## ", PAGE, flags=re.M)[1:]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
STEP = re.compile(r"```sh\n(.*?)^```\n+```json\n(.*?)^```$", re.M | re.S)
FUNCTIONS = {name: getattr(math, name) for name in ("cos", "exp", "sin", "sqrt")} | {"max": max}

each_section = pytest.mark.parametrize("section", SECTIONS, ids=lambda text: text.split(".")[0])


def steps(section: str) -> list[tuple[Any, Any]]:
    """The (answer as shown, answer as found) of each request of a section."""
    return [(orjson.loads(shown), answer(curl)) for curl, shown in STEP.findall(section)]


@cache
def answer(curl: str) -> Any:  # noqa: ANN401 - plain JSON
    command, flag, url, header, content_type, data, body = shlex.split(curl)
    assert (command, flag, header, data) == ("curl", "-s", "-H", "-d")
    assert content_type == "Content-Type: application/json"
    path = url.removeprefix("http://127.0.0.1:8000")
    headers = {"content-type": "application/json"}
    response = TestClient(create_app(Settings())).post(path, content=body, headers=headers)
    assert response.status_code == 200, response.text
    return orjson.loads(response.content)


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


@each_section
def test_arithmetic_of_the_text_is_right(section: str) -> None:
    for left, right in (span.split(" = ") for span in spans(section) if " = " in span):
        assert holds(float(eval(left, {}, FUNCTIONS)), float(right)), left


@each_section
def test_numbers_of_the_text_are_in_the_answer(section: str) -> None:
    found = [part for _, answered in steps(section) for part in parts(answered)]
    for span in spans(section):
        if re.match(r"[-\d\[]", span) and " = " not in span:
            assert any(holds(part, orjson.loads(span)) for part in found), span
