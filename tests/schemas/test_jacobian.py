"""Derivatives as asked for: a pair or a measure, and which keys go with which."""

from typing import Any

import pytest
from pydantic import ValidationError

from schemas.jacobian import PARTS, JacobianRequest

RUN = {"model": {"name": "eiffel-toy"}, "input": {"token_ids": [0, 1]}}
PAIR = {**RUN, "of": "Z", "by": "X"}
MEASURE = {**RUN, "measure": {"logit": 1}, "gradients": ["X"]}


def read(body: dict[str, Any]) -> JacobianRequest:
    return JacobianRequest.model_validate(body)


def test_defaults_are_those_that_are_told() -> None:
    found = read(PAIR)
    assert found.dtype == "float64"
    assert found.parts == PARTS
    assert (found.position, found.source, found.batch) == (None, None, None)
    assert read(MEASURE).selected()[0].name == "X"


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (RUN, "exactly one of of, measure"),
        ({**PAIR, **MEASURE}, "exactly one of of, measure"),
        ({**RUN, "of": "Z"}, "of and by go together"),
        ({**MEASURE, "by": "X"}, "of and by go together"),
        ({**RUN, "measure": {"logit": 1}}, "measure and gradients go together"),
        ({**PAIR, "gradients": ["X"]}, "measure and gradients go together"),
        ({**MEASURE, "position": 1}, "belong to of"),
        ({**MEASURE, "source": 1}, "belong to of"),
        ({**MEASURE, "batch": 0}, "belong to of"),
        ({**MEASURE, "ask": ["matrix"]}, "belong to of"),
        ({**PAIR, "ask": ["matrix", "matrix"]}, "stands once"),
        ({**PAIR, "ask": ["identity_part", "factors"]}, "one of matrix, singular_values and norms"),
        ({**MEASURE, "gradients": [{"name": "X", "summary": True}]}, "summary"),
        ({**PAIR, "ask": []}, "at least 1"),
        ({**PAIR, "ask": ["inverse"]}, "matrix"),
        ({**MEASURE, "gradients": []}, "at least 1"),
        ({**PAIR, "of": ""}, "at least 1"),
        ({**PAIR, "position": 1.0}, "integer"),
        ({**PAIR, "interventions": []}, "not permitted"),
    ],
)
def test_body_that_breaks_a_rule_is_refused(body: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValidationError, match=rule):
        read(body)
