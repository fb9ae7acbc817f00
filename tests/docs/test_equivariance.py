"""docs/equivariance.md: every request runs, its answer is the one shown, every key is there."""

from typing import Any

import pytest

import shown
from compute import equivariance, removing
from schemas.equivariance import EquivarianceRequest
from schemas.equivariance_answers import EquivarianceAnswer

PAGE = shown.page("equivariance.md")


@pytest.mark.parametrize(("curl", "told"), shown.steps(PAGE))
def test_request_is_answered_as_shown(curl: str, told: Any) -> None:  # noqa: ANN401 - plain JSON
    assert shown.holds(shown.answer(curl), told)


@pytest.mark.parametrize("kind", [EquivarianceRequest, EquivarianceAnswer])
def test_every_key_is_documented(kind: type) -> None:
    tables = PAGE.partition("## The request")[2]
    assert {key for key in shown.keys(kind) if f"`{key}`" not in tables} == set()


def test_every_case_is_documented() -> None:
    assert [case.name for case in removing.CASES if f"`{case.name}`" not in PAGE] == []


def test_tolerances_are_those_told() -> None:
    assert "1e-12 in\n  float64, 5e-4 in float32" in PAGE
    assert equivariance.TOLERANCE == {"float64": 1e-12, "float32": 5e-4}
