"""docs/presets.md: its table is the presets', its request is answered, its words hold."""

import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient

from schemas.presets import PresetLine
from service.app import create_app
from service.routes import presets
from service.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "presets.md").read_text("utf-8")
TEXT = " ".join(PAGE.split())
LISTED = presets.listed().presets
ROW = re.compile(r"^\| `([\w.-]+)` \| ([\d,]+) \| (yes|no) \| (.*?) \| (.*?) \|$", re.M)


def row(line: PresetLine) -> tuple[str, ...]:
    """A preset as the page lists it."""
    runs = "yes" if line.runs else "no"
    return (line.name, f"{line.parameters:,}", runs, line.meaning, line.source)


def test_table_lists_every_preset() -> None:
    assert ROW.findall(PAGE) == [row(line) for line in LISTED]
    assert f"sizes all {len(LISTED)} of them" in TEXT


def test_keys_of_the_answer_are_told() -> None:
    keys, _ = PAGE.split("## Changes")
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", keys, re.M)
    told = re.findall(r"\w+", " ".join(rows))
    assert {*told, "config"} == set(PresetLine.model_fields)


def test_request_of_the_page_is_answered() -> None:
    (request,) = re.findall(r"^```json\n(.*?)^```$", PAGE, re.M | re.S)
    response = TestClient(create_app(Settings())).post("/v1/trace", json=orjson.loads(request))
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    assert answer["model"]["config"]["d_model"] == 1024
    assert answer["model"]["overrides"] == ["n_layers"]


@pytest.mark.parametrize("line", [line for line in LISTED if not line.runs], ids=lambda x: x.name)
def test_what_does_not_run_is_among_what_the_page_says(line: PresetLine) -> None:
    words = re.findall(r"\w: (.*?) can be sized", str(line.reason))
    singular = {"a mixture with dense blocks": "mixtures with dense blocks"}
    singular |= {"patches of an image": "patches"}
    assert words
    assert [
        w for w in words if singular.get(w, w).removeprefix("a ").lower() not in TEXT.lower()
    ] == []
