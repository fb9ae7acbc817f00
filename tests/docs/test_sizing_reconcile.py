"""docs/sizing-reconcile.md: requests run, answers are those shown, keys and ids are all there."""

import re
from typing import Any

import pytest

import shown
import sized
from compute.sizing.reconciling import explanations
from schemas.sizing.reconcile import ReconcileAnswer, ReconcileRequest

PAGE = shown.page("sizing-reconcile.md")
STEPS = shown.steps(PAGE)
ROWS = re.findall(r"^\| `(\w+)` \| (\w+) \| ", PAGE.partition("## The differences")[2], re.M)


@pytest.mark.parametrize(("curl", "told"), STEPS)
def test_request_is_answered_as_shown(curl: str, told: Any) -> None:  # noqa: ANN401 - plain JSON
    assert shown.holds(shown.answer(curl), told)


@pytest.mark.parametrize("kind", [ReconcileRequest, ReconcileAnswer])
def test_every_key_is_documented(kind: type) -> None:
    tables = PAGE.partition("## The request")[2]
    assert {key for key in shown.keys(kind) if f"`{key}`" not in tables} == set()


def test_differences_are_told_in_their_order() -> None:
    assert tuple(name for name, _ in ROWS) == explanations.ORDER


def test_groups_are_as_told() -> None:
    told = dict(ROWS)
    for name in sized.truths():
        for found in explanations.differences(sized.config_of(name)):
            assert told[found.id] == found.group
