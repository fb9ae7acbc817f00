"""docs/sizing-inverse.md: every request runs, its answer is the one shown, every key is there."""

from typing import Any

import pytest

import shown
from compute.sizing.inverting.inverse_grid import MOST_WIDTHS
from schemas.sizing.inverse import InverseAnswer, InverseRequest

PAGE = shown.page("sizing-inverse.md")
STEPS = shown.steps(PAGE)


@pytest.mark.parametrize(("curl", "told"), STEPS)
def test_request_is_answered_as_shown(curl: str, told: Any) -> None:  # noqa: ANN401 - plain JSON
    assert shown.holds(shown.answer(curl), told)


@pytest.mark.parametrize("kind", [InverseRequest, InverseAnswer])
def test_every_key_is_documented(kind: type) -> None:
    tables = PAGE.partition("## The request")[2]
    assert {key for key in shown.keys(kind) if f"`{key}`" not in tables} == set()


def test_five_best_that_are_shown_are_the_whole_list() -> None:
    curl, told = STEPS[0]
    found = shown.answer(curl)["best"]
    assert [x["value"]["exact"] for x in found] == [x["value"]["exact"] for x in told["best"]]


def test_most_widths_are_as_told() -> None:
    assert f"{MOST_WIDTHS:,} widths" in PAGE
