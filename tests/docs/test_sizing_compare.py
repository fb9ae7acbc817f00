"""docs/sizing-compare.md: every request runs, its answer is the one shown, every key is there."""

from typing import Any

import pytest

import shown
from schemas.sizing.compare import SizingCompareAnswer, SizingCompareRequest

PAGE = shown.page("sizing-compare.md")
STEPS = shown.steps(PAGE)


@pytest.mark.parametrize(("curl", "told"), STEPS)
def test_request_is_answered_as_shown(curl: str, told: Any) -> None:  # noqa: ANN401 - plain JSON
    assert shown.holds(shown.answer(curl), told)


@pytest.mark.parametrize("kind", [SizingCompareRequest, SizingCompareAnswer])
def test_every_key_is_documented(kind: type) -> None:
    tables = PAGE.partition("## The request")[2]
    assert {key for key in shown.keys(kind) if f"`{key}`" not in tables} == set()
