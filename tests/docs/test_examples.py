"""The JSON examples of docs/trace.md: the request gets the answer that is shown."""

import re
from pathlib import Path
from typing import Any

import orjson
from starlette.testclient import TestClient

from near import near
from service.app import create_app
from service.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "trace.md").read_text("utf-8")
REQUEST, ANSWER = (
    orjson.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", PAGE, re.M | re.S)
)


def test_request_of_the_page_gets_the_answer_of_the_page() -> None:
    found = TestClient(create_app(Settings())).post("/v1/trace", json=REQUEST).json()
    assert near(_of(ANSWER, found), ANSWER)


def _of(shown: Any, found: Any) -> Any:  # noqa: ANN401 - plain JSON
    """What was found, less the keys that are not shown."""
    if not isinstance(shown, dict):
        return found
    return {key: _of(value, found.get(key)) for key, value in shown.items()}
