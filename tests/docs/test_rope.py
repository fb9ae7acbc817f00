"""docs/rope.md: every request runs, its answer is the one shown, every key is there."""

import re
from typing import Any

import pytest

import shown
from schemas.rope import RopeRequest
from schemas.rope_answers import RopeAnswer

PAGE = shown.page("rope.md")
STEPS = shown.steps(PAGE)


@pytest.mark.parametrize(("curl", "told"), STEPS)
def test_request_is_answered_as_shown(curl: str, told: Any) -> None:  # noqa: ANN401 - plain JSON
    assert shown.holds(shown.answer(curl), told)


@pytest.mark.parametrize("kind", [RopeRequest, RopeAnswer])
def test_every_key_is_documented(kind: type) -> None:
    tables = PAGE.partition("## The request")[2]
    assert {key for key in shown.keys(kind) if f"`{key}`" not in tables} == set()


def test_row_of_the_grid_is_as_told() -> None:
    curl, _ = STEPS[-1]
    told = re.search(r"begins with ([\d.]+),.*then ([\d., ]+), and is (-[\d.]+) at a", PAGE, re.S)
    assert told is not None
    numbers = [float(x) for x in re.findall(r"-?\d+\.\d+", " ".join(told.groups()))]
    row = shown.answer(curl)["grid"]["dots"][0]
    assert [round(x, 4) for x in row] == numbers


def test_dot_product_of_a_spectrum_is_the_sum_that_is_told() -> None:
    (answer,) = [
        told for _, told in STEPS if len((told.get("spectrum") or {}).get("pairs", [])) > 1
    ]
    total = sum(pair["dot"] for pair in answer["spectrum"]["pairs"])
    assert total == pytest.approx(answer["dot"], abs=1e-14)
