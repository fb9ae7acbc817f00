"""docs/compare.md: every request gets the answer that is shown, and every key is told."""

import re
from typing import Any

import pytest

import shown
from schemas.compare import CompareRequest
from schemas.compare_answers import (
    CompareAnswer,
    ComparedRun,
    OnlyIn,
    StageDifference,
    StageShapes,
)

PAGE = shown.page("compare.md")
STEPS = shown.steps(PAGE)
ROUNDED = 6e-4  # the page rounds to three places


def test_page_shows_requests_and_their_answers() -> None:
    assert len(STEPS) == 4


@pytest.mark.parametrize(("curl", "told"), STEPS, ids=range(len(STEPS)))
def test_request_is_answered_as_shown(curl: str, told: Any) -> None:  # noqa: ANN401 - plain JSON
    found = shown.answer(curl)
    assert shown.holds(found, told, ROUNDED), found


TOLD = {
    name
    for cell in re.findall(r"^\| (`.*?) \|", PAGE, re.M)
    for name in re.findall("`([^`]+)`", cell)
}
"""What stands in the first column of a table."""


def test_every_key_of_request_and_answer_has_its_line() -> None:
    keys = (*CompareRequest.model_fields, *CompareAnswer.__annotations__)
    assert set(keys) | set(StageDifference.__annotations__) == TOLD


@pytest.mark.parametrize("part", [ComparedRun, OnlyIn, StageShapes])
def test_every_key_inside_is_told(part: type[Any]) -> None:
    for name in part.__annotations__:
        assert f"`{name}`" in PAGE, name
