"""What a reader would stumble over is told: a preset's name, nothing compared, no later reader."""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

LETTERS = {"name": "letter-sort"}


def test_name_of_a_preset_is_told_to_be_one(
    client: TestClient, assert_problem: Callable[..., dict[str, Any]]
) -> None:
    body = {"model": {"name": "gpt2-tiny"}, "input": {"token_ids": [1]}}
    (fault,) = assert_problem(client.post("/v1/trace", json=body), "unknown-model")["errors"]
    assert "send preset in the place of name" in fault["detail"]


@pytest.mark.parametrize(("other", "compared"), [("CABBAC", True), ("CABBA", False)])
def test_runs_of_which_no_stage_has_the_same_shape_are_told(
    client: TestClient, other: str, compared: bool
) -> None:
    runs = [{"model": LETTERS, "input": {"text": text}} for text in ("CABBAC", other)]
    answer = client.post("/v1/compare", json={"a": runs[0], "b": runs[1]}).json()
    assert answer["first_difference"] is None
    assert bool(answer["stages"]) is compared
    assert (answer["reason"] is None) is compared
    assert bool(answer["shapes"]) is not compared


@pytest.mark.parametrize(("writer", "reader", "told"), [(1, 0, True), (0, 1, False)])
def test_heads_without_a_later_reader_are_told(
    client: TestClient, writer: int, reader: int, told: bool
) -> None:
    heads = {"heads": [{"block": writer, "head": 0}], "readers": [{"block": reader, "head": 0}]}
    body = {"model": {"name": "induction"}, "ask": ["composition"], **heads}
    answer = client.post("/v1/subspaces", json=body).json()
    assert any("none composes with them" in note for note in answer["notes"]) is told
