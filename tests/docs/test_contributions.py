"""docs/contributions.md: every request gets the answer shown, every key and split is told."""

import re
from typing import Any, get_args

import pytest

import asking
import runs
import shown
from asking import SPLITS
from compute.contributions.splits import By
from schemas.contribution_answers import ContributionsAnswer
from schemas.contributions import ContributionsRequest, NormScale, Split

PAGE = shown.page("contributions.md")
STEPS = shown.steps(PAGE)
ROUNDED = 6e-4
"""The page rounds to three places."""


def holds(found: object, told: object) -> bool:
    """Whether an answer has what is told: keys of objects, objects of a list in their order, all
    of a list of numbers."""
    if isinstance(told, dict) and isinstance(found, dict):
        return all(key in found and holds(found[key], told[key]) for key in told)
    if isinstance(told, list) and isinstance(found, list):
        if told and isinstance(told[0], dict):
            rest = iter(found)
            return all(any(holds(item, wanted) for item in rest) for wanted in told)
        return len(found) == len(told) and all(map(holds, found, told))
    if isinstance(told, float) and isinstance(found, float):
        return abs(found - told) <= ROUNDED
    return found == told


@pytest.mark.parametrize(("curl", "told"), STEPS, ids=range(len(STEPS)))
def test_request_is_answered_as_shown(curl: str, told: Any) -> None:  # noqa: ANN401 - plain JSON
    assert holds(shown.answer(curl), told)


@pytest.mark.parametrize("kind", [ContributionsRequest, ContributionsAnswer])
def test_every_key_is_documented(kind: type) -> None:
    tables = PAGE.partition("## The request")[2]
    assert {key for key in shown.keys(kind) if not re.search(rf"`(\"?){key}\b", tables)} == set()


def test_every_split_and_scale_is_documented() -> None:
    table = PAGE.partition("## What the parts are")[2].partition("\n\n- ")[0]
    for split in get_args(Split):
        assert re.search(rf"^\| `{split}` \|", table, re.M), split
    for scale in get_args(NormScale):
        assert f'"{scale}"' in PAGE


def test_parts_that_the_page_names_are_parts_of_answers() -> None:
    spans = re.findall("`([^`]+)`", PAGE.partition("## What the parts are")[2])
    told = {kind_of(span) for span in spans if re.match(r"blocks\.\d", span)}
    found = {kind_of(part) for seed in range(60) for by in SPLITS for part in ids(seed, by)}
    assert len(told) > 20
    assert told - found == {"blocks.0.attn_sum", "blocks.0.norm0.bias"}  # a sum; of a logit alone


def kind_of(name: str) -> str:
    return re.sub(r"\d+(?=\.|$)", "0", name)


def ids(seed: int, by: By) -> set[str]:
    run = runs.run_of_case(runs.case_of(seed), select=[])
    return {part.id for at in asking.ask(run, by=by) for part in at.parts}


def test_page_has_the_place_of_the_picture() -> None:
    assert "\n## Which head wrote the answer\n" in PAGE
