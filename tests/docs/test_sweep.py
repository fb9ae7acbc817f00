"""docs/sweep.md: every request gets the answer that is shown, and every key is told."""

import re
import shlex
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient

from schemas.measures import MeasureAsked
from schemas.sweep import SweepRequest
from schemas.sweep_answers import SweepAnswer, SweepInputs
from service.app import create_app
from service.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "sweep.md").read_text("utf-8")
STEPS = re.findall(r"```sh\n(.*?)^```$\n+```json\n(.*?)^```$", PAGE, re.M | re.S)
ROUNDED = 6e-4  # the page rounds to three places


def answer(curl: str) -> Any:  # noqa: ANN401 - plain JSON
    command, flag, url, header, content_type, data, body = shlex.split(curl)
    assert (command, flag, header, data) == ("curl", "-s", "-H", "-d")
    assert url == "http://127.0.0.1:8000/v1/sweep"
    headers = {content_type.split(": ")[0]: content_type.split(": ")[1]}
    client = TestClient(create_app(Settings()))
    response = client.post("/v1/sweep", content=body.encode(), headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


def holds(found: object, shown: object) -> bool:
    """Whether an answer has what is shown: of an object its keys, of a list of objects each that
    is shown, of a list of numbers all."""
    if isinstance(shown, dict) and isinstance(found, dict):
        return all(key in found and holds(found[key], shown[key]) for key in shown)
    if isinstance(shown, list) and isinstance(found, list):
        if shown and isinstance(shown[0], dict):
            return all(any(holds(item, wanted) for item in found) for wanted in shown)
        return len(found) == len(shown) and all(map(holds, found, shown))
    if type(shown) in (int, float) and isinstance(found, int | float):
        return abs(found - shown) <= ROUNDED  # type: ignore[operator]
    return found == shown


def test_page_shows_requests_and_their_answers() -> None:
    assert len(STEPS) == PAGE.count("```sh") == PAGE.count("```json") == 4


@pytest.mark.parametrize(("curl", "shown"), STEPS, ids=range(4))
def test_request_is_answered_as_shown(curl: str, shown: str) -> None:
    found = answer(curl)
    assert holds(found, orjson.loads(shown)), found


TOLD = {
    name
    for cell in re.findall(r"^\| (`.*?) \|", PAGE, re.M)
    for name in re.findall("`([^`]+)`", cell)
}
"""What stands in the first column of a table."""


def test_every_key_of_request_and_answer_has_its_line() -> None:
    assert set(SweepRequest.model_fields) | set(SweepAnswer.__annotations__) == TOLD


@pytest.mark.parametrize("part", [MeasureAsked, SweepInputs])
def test_every_key_inside_is_told(part: type[Any]) -> None:
    for name in getattr(part, "model_fields", None) or part.__annotations__:
        assert re.search(rf"[`\"]{name}[`\"]", PAGE), name
