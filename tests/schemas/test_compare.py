"""Comparisons as requests have them."""

from typing import Any

import pytest
from pydantic import ValidationError

from schemas.compare import CompareRequest

RUN: dict[str, Any] = {"model": {"name": "eiffel-toy"}, "input": {"token_ids": [0, 1]}}


def test_threshold_is_a_millionth_if_left_out() -> None:
    asked = CompareRequest.model_validate({"a": RUN, "b": {**RUN, "dtype": "float64"}})
    assert asked.threshold == 1e-6
    assert (asked.a.dtype, asked.b.dtype) == ("float32", "float64")


@pytest.mark.parametrize("threshold", [0, 0.0, 1, 1e300])
def test_threshold_is_any_number_from_zero(threshold: float) -> None:
    asked = CompareRequest.model_validate({"a": RUN, "b": RUN, "threshold": threshold})
    assert asked.threshold == threshold


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({"a": RUN}, ("b",)),
        ({"a": RUN, "b": RUN, "c": RUN}, ("c",)),
        ({"a": RUN, "b": RUN, "threshold": -1e-9}, ("threshold",)),
        ({"a": RUN, "b": RUN, "threshold": float("inf")}, ("threshold",)),
        ({"a": RUN, "b": RUN, "threshold": True}, ("threshold",)),
        ({"a": RUN, "b": {**RUN, "dtype": "float16"}}, ("b", "dtype")),
        ({"a": {"model": RUN["model"]}, "b": RUN}, ("a", "input")),
    ],
)
def test_fault_is_placed_in_the_run_that_has_it(
    wrong: dict[str, Any], place: tuple[str, ...]
) -> None:
    with pytest.raises(ValidationError) as refused:
        CompareRequest.model_validate(wrong)
    assert [fault["loc"] for fault in refused.value.errors()] == [place]
