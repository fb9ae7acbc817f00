"""Measures and tokens as requests have them."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from schemas.measures import MeasureAsked
from schemas.tokens import Token

TOKENS: TypeAdapter[int | str] = TypeAdapter(Token)


@pytest.mark.parametrize("token", ["A", " the", 0, 50256, "x" * 128])
def test_token_is_a_text_or_an_id(token: object) -> None:
    assert TOKENS.validate_python(token) == token


@pytest.mark.parametrize("token", ["", "x" * 129, -1, 1 << 31, True, 1.0, None, [1], {"id": 1}])
def test_what_is_no_token_is_one_fault(token: object) -> None:
    with pytest.raises(ValidationError) as refused:
        TOKENS.validate_python(token)
    assert refused.value.error_count() == 1


@pytest.mark.parametrize(
    "asked",
    [
        {"logit": "A"},
        {"logit": 3, "minus": "C", "position": 0, "batch": 1},
        {"stage": "blocks.0.Z", "direction": [1, 0.5]},
    ],
)
def test_measure_is_a_logit_or_a_stage_along_a_direction(asked: dict[str, Any]) -> None:
    assert MeasureAsked.model_validate(asked).model_fields_set == set(asked)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"logit": "A", "stage": "Z", "direction": [1]},
        {"stage": "Z"},
        {"logit": "A", "direction": [1]},
        {"stage": "Z", "direction": [1], "minus": "A"},
        {"stage": "Z", "direction": [[1]]},
        {"logit": "A", "position": 0.5},
        {"logit": "A", "extra": 1},
    ],
)
def test_measure_of_neither_or_both_is_one_fault(asked: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        MeasureAsked.model_validate(asked)
    assert refused.value.error_count() == 1
