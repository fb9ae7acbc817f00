"""A permutation as asked for: whole numbers, stages by name, float64."""

from typing import Any

import pytest
from pydantic import ValidationError

from schemas.equivariance import EquivarianceRequest

WHOLE: dict[str, Any] = {"model": {"name": "eiffel-toy"}, "input": {"token_ids": [0, 1, 2]}}


def refused(**given: object) -> set[str | int]:
    with pytest.raises(ValidationError) as raised:
        EquivarianceRequest.model_validate({**WHOLE, **given})
    return {fault["loc"][0] for fault in raised.value.errors(include_input=False)}


def test_arithmetic_is_float64_unless_asked_otherwise() -> None:
    assert EquivarianceRequest.model_validate(WHOLE).dtype == "float64"
    assert EquivarianceRequest.model_validate({**WHOLE, "dtype": "float32"}).dtype == "float32"


def test_stages_are_asked_for_by_name_and_whole() -> None:
    asked = EquivarianceRequest.model_validate({**WHOLE, "select": ["A", "Z"]})
    found = asked.selected()
    assert found is not None
    assert [(one.name, one.where, one.summary) for one in found] == [
        ("A", {}, False),
        ("Z", {}, False),
    ]
    assert EquivarianceRequest.model_validate(WHOLE).selected() is None


@pytest.mark.parametrize("select", [[], [{"name": "A", "position": [0]}], "A", ["A"] * 1001, [1]])
def test_other_selections_are_refused(select: object) -> None:
    assert refused(select=select) == {"select"}


@pytest.mark.parametrize("order", [[], [1.0, 0], [True, 0], [-1, 0], [[0, 1]], "102", [None]])
def test_a_permutation_is_a_list_of_whole_numbers(order: object) -> None:
    assert refused(permutation=order) == {"permutation"}


def test_unknown_keys_are_refused() -> None:
    assert refused(positions=False) == {"positions"}
