"""The table of bars: complete, measured, and the page tells what was measured."""

import json

import numpy as np
import pytest

from benchmarks import comparing, measuring, results, settled
from benchmarks.bars import BARS, BY_NAME, chosen
from benchmarks.results import Line
from benchmarks.sides import by_hand, kept, ours, rows
from compute import config_json
from oracle import forward

FULL = settled.ROOT / "benchmarks" / "results" / "full.json"


def line(name: str, low: float, value: float, high: float) -> Line:
    """A bar as measured in nine rounds."""
    return Line(name=name, value=value, low=low, high=high, rounds=9)


def test_every_bar_is_measured_by_a_group() -> None:
    assert set(measuring.MEASURES) == {bar.name for bar in BARS}
    assert len(BY_NAME) == len(BARS)


def test_short_form_leaves_out_what_needs_other_packages() -> None:
    names = {bar.name for bar in chosen([], peers=False)}
    assert {"block-512", "rate-naive", "error"} <= names
    assert not {"torch-128", "lens-16"} & names


def test_a_beginning_names_several_bars() -> None:
    assert [bar.name for bar in chosen(["heads"], peers=False)] == ["heads-128", "heads-512"]


def test_bars_are_met_from_the_side_that_is_better() -> None:
    assert BY_NAME["block-16"].met(1.12)
    assert not BY_NAME["block-16"].met(1.13)
    assert BY_NAME["rate-typed"].met(1.7)
    assert not BY_NAME["rate-typed"].met(1.6)
    assert BY_NAME["start-healthz"].met(9.0) is None


def test_function_by_hand_agrees_with_the_transcription() -> None:
    model = ours.stack(1, kept.SMALL)
    values = ours.tensors_of(model)
    right = forward.trace(config_json.as_json(model), values, tensor=rows.rows(8, 64))
    found = by_hand.small()()
    assert list(found) == kept.names(1)
    for name, array in found.items():
        np.testing.assert_allclose(array, right[name], rtol=0, atol=3e-6, err_msg=name)


def test_traced_small_model_returns_the_dictionary_of_the_function_by_hand() -> None:
    assert list(ours.small()()) == list(by_hand.small()())


def test_what_overlaps_with_the_baseline_is_no_change() -> None:
    stored = {"small": line("small", 1.0, 1.1, 1.3)}
    assert not list(comparing.changes([line("small", 1.25, 1.5, 1.6)], stored))
    assert not comparing.slower([line("small", 0.5, 0.6, 0.7)], stored)
    assert comparing.slower([line("small", 1.4, 1.5, 1.6)], stored)


def test_fewer_requests_a_second_are_slower() -> None:
    stored = {"rate-typed": line("rate-typed", 1.9, 2.0, 2.1)}
    assert comparing.slower([line("rate-typed", 1.0, 1.1, 1.2)], stored)
    assert not comparing.slower([line("rate-typed", 3.0, 3.1, 3.2)], stored)


def test_line_has_the_median_and_the_quartiles_of_its_rounds() -> None:
    made = results.line("small", [3.0, 1.0, 2.0, 5.0, 4.0], {"ours_ms": [7.0, 9.0, 8.0]})
    assert (made.low, made.value, made.high, made.rounds) == (2.0, 3.0, 4.0, 5)
    assert made.details == {"ours_ms": 8.0}


@pytest.mark.skipif(not FULL.exists(), reason="nothing was measured yet")
def test_page_tells_what_was_measured() -> None:
    lines, head = results.read(FULL)
    page = (settled.ROOT / "docs" / "speed.md").read_text("utf-8")
    between = page.partition(results.BEGIN)[2].partition(results.END)[0]
    assert between == results.shown(lines, head)


@pytest.mark.skipif(not FULL.exists(), reason="nothing was measured yet")
def test_results_have_the_bars_of_today() -> None:
    found = {bar["name"]: bar for bar in json.loads(FULL.read_text())["bars"]}
    assert set(found) == set(BY_NAME)
    for name, bar in found.items():
        assert (bar["reach"], bar["aim"]) == (BY_NAME[name].reach, BY_NAME[name].aim)
