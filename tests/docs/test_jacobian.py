"""docs/jacobian.md: every request runs, its answer is the one shown, every key is there."""

from typing import Any, get_args

import numpy as np
import pytest

import shown
from schemas.jacobian import JacobianRequest, Part
from schemas.jacobian_answers import JacobianAnswer

PAGE = shown.page("jacobian.md")
STEPS = shown.steps(PAGE)


@pytest.mark.parametrize(("curl", "told"), STEPS)
def test_request_is_answered_as_shown(curl: str, told: Any) -> None:  # noqa: ANN401 - plain JSON
    assert shown.holds(shown.answer(curl), told)


@pytest.mark.parametrize("kind", [JacobianRequest, JacobianAnswer])
def test_every_key_is_documented(kind: type) -> None:
    tables = PAGE.partition("## The request")[2]
    assert {key for key in shown.keys(kind) - {"summary"} if f"`{key}`" not in tables} == set()


def test_every_part_that_may_be_asked_for_is_documented() -> None:
    for part in get_args(Part):
        assert f"`{part}`" in PAGE


def test_product_of_the_factors_is_the_whole_as_told() -> None:
    assert "`whole` is `factors.norm` times `factors.sum.whole`" in PAGE
    (told,) = [told["jacobian"] for _, told in STEPS if told.get("jacobian", {}).get("factors")]
    norm, total = (told["factors"][key] for key in ("norm", "sum"))
    product = np.array(norm["matrix"]) @ np.array(total["whole"]["matrix"])
    assert np.allclose(product, told["whole"]["matrix"], rtol=0, atol=1e-15)
    assert np.allclose(
        np.eye(2) + total["branch"]["matrix"], total["whole"]["matrix"], rtol=0, atol=1e-15
    )


def test_attribution_of_the_toy_adds_up_as_told() -> None:
    (told,) = [told for _, told in STEPS if told.get("measure")]
    added = told["attribution"]["blocks.0.attn_out"]["sum"]
    assert f"`-1 + {added!r} = {told['measure']['value']!r}`" in PAGE
    assert -1 + added == pytest.approx(told["measure"]["value"], abs=1e-15)


def test_first_number_of_the_second_matrix_is_the_weight_as_told() -> None:
    pattern = shown.answer(
        STEPS[0][0].replace("/v1/jacobian", "/v1/trace").partition("-d '")[0]
        + """-d '{"model": {"name": "eiffel-toy"}, "input": {"text": "the Eiffel tower"},
            "select": ["A"], "dtype": "float64"}'"""
    )["tensors"]["blocks.0.attn.pattern"]["data"]
    matrix = STEPS[1][1]["jacobian"]["whole"]["matrix"]
    assert matrix[0][0] == pytest.approx(pattern[0][2][1], abs=1e-15)
    assert "a₂₁ = 0.5034898" in PAGE
