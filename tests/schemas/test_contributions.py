"""A question about contributions as it may be written."""

from typing import Any

import pytest
from pydantic import ValidationError

from schemas.contributions import ContributionsRequest, DirectionAsked

ASKED = {"model": {"name": "eiffel-toy"}, "input": {"token_ids": [0, 1]}}


def test_only_model_and_input_are_needed() -> None:
    asked = ContributionsRequest.model_validate(ASKED)
    assert (asked.by, asked.positions, asked.norm_scale) == ("sublayer", [-1], "frozen")
    assert (asked.of, asked.batch, asked.direction, asked.top_k) == (None, None, None, None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"by": "heads"},
        {"top_k": 0},
        {"top_k": True},
        {"positions": []},
        {"positions": [0.5]},
        {"norm_scale": "lens"},
        {"of": ""},
        {"vectors": 1},
        {"unknown": 1},
    ],
)
def test_what_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        ContributionsRequest.model_validate({**ASKED, **wrong})
    assert refused.value.error_count() == 1


@pytest.mark.parametrize(
    "direction",
    [
        {},
        {"token": 1, "vector": [1.0]},
        {"minus": 1},
        {"vector": [1.0], "minus": 1},
        {"token": "A", "after_norm": True},
        {"vector": [[1.0]]},
        {"vector": ["1"]},
        {"token": ""},
        {"token": -1},
        {"token": 1.5},
    ],
)
def test_direction_is_a_token_or_a_vector(direction: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DirectionAsked.model_validate(direction)
