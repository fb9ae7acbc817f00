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
REQUEST, ANSWER, PACKED = (
    orjson.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", PAGE, re.M | re.S)
)


def test_request_of_the_page_gets_the_answer_of_the_page() -> None:
    assert near(_of(ANSWER, _answer(REQUEST)), ANSWER)


def test_base64_of_the_page_is_the_row_of_the_page() -> None:
    assert "is the row `[[1.0, 0.5]]`" in PAGE
    assert _answer(PACKED)["tensors"]["blocks.0.resid_pre"]["data"] == [[1.0, 0.5]]


def _answer(request: object) -> Any:  # noqa: ANN401 - plain JSON
    return TestClient(create_app(Settings())).post("/v1/trace", json=request).json()


def _of(shown: Any, found: Any) -> Any:  # noqa: ANN401 - plain JSON
    """What was found, less the keys that are not shown."""
    if not isinstance(shown, dict):
        return found
    return {key: _of(value, found.get(key)) for key, value in shown.items()}
