"""docs/sweep.md: every request gets the answer that is shown, and every key is told."""

import re
from typing import Any

import pytest

import shown
from schemas.measures import MeasureAsked
from schemas.sweep import SweepRequest
from schemas.sweep_answers import SweepAnswer, SweepInputs

PAGE = shown.page("sweep.md")
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
    assert set(SweepRequest.model_fields) | set(SweepAnswer.__annotations__) == TOLD


@pytest.mark.parametrize("part", [MeasureAsked, SweepInputs])
def test_every_key_inside_is_told(part: type[Any]) -> None:
    for name in getattr(part, "model_fields", None) or part.__annotations__:
        assert re.search(rf"[`\"]{name}[`\"]", PAGE), name
