"""Sweeps as requests have them."""

from typing import Any

import pytest
from pydantic import ValidationError

from schemas.sweep import SweepRequest

PATCH: dict[str, Any] = {
    "model": {"name": "induction"},
    "clean": {"token_ids": [0, 1]},
    "corrupted": {"token_ids": [0, 2]},
    "stage": "attn.z",
    "over": ["block", "head"],
    "measure": {"logit": 1},
}
ZERO = {key: value for key, value in PATCH.items() if key != "corrupted"} | {"op": "zero"}


def test_patch_runs_the_corrupted_input_by_default() -> None:
    asked = SweepRequest.model_validate(PATCH)
    assert asked.run_at_each_cell == "corrupted"
    assert asked.intervened().source == 0
    assert SweepRequest.model_validate({**PATCH, "base": "clean"}).run_at_each_cell == "clean"


def test_other_operations_run_the_clean_input() -> None:
    for given in ({}, {"base": "clean"}):
        asked = SweepRequest.model_validate({**ZERO, **given})
        assert asked.run_at_each_cell == "clean"
        assert asked.intervened().source is None


def test_change_is_as_compute_takes_it() -> None:
    given = {
        **ZERO,
        "op": "add",
        "value": [[0.5, 1]],
        "where": {"block": [-1], "head": [0, 1]},
        "dtype": "float64",
    }
    made = SweepRequest.model_validate(given).intervened()
    assert (made.stage, made.op, made.over) == ("attn.z", "add", ())
    assert dict(made.where) == {"block": (-1,), "head": (0, 1)}
    assert made.value is not None
    assert made.value.tolist() == [[0.5, 1.0]]  # type: ignore[union-attr]
    mean = {**ZERO, "op": "mean", "mean_over": ["batch", "position"]}
    assert SweepRequest.model_validate(mean).intervened().over == ("batch", "position")


@pytest.mark.parametrize(
    "wrong",
    [
        {**PATCH, "op": "mean"},
        {**ZERO, "op": "patch"},
        {**ZERO, "base": "corrupted"},
        {**PATCH, "base": "other"},
        {**PATCH, "over": []},
        {**PATCH, "over": ["block", "head", "position", "d_value"]},
        {**PATCH, "over": ["block", "block"]},
        {**PATCH, "over": "block"},
        {**PATCH, "over": ["1"]},
        {**PATCH, "where": {"layer": [0]}},
        {**PATCH, "where": {"block": []}},
        {**PATCH, "where": {"block": 0}},
        {**PATCH, "path": "indirect"},
        {**PATCH, "measure": {}},
        {**PATCH, "stage": ""},
        {**PATCH, "select": ["Z"]},
        {**ZERO, "op": "set", "value": [[1], [1, 2]]},
    ],
)
def test_what_is_no_sweep_is_one_fault(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        SweepRequest.model_validate(wrong)
    assert refused.value.error_count() == 1
