"""Closed forms of (query, key) pairs against loops over every query and every key."""

from fractions import Fraction
from itertools import product
from typing import get_args

import pytest

from compute.config import MaskKind
from compute.sizing.operations import pairs
from compute.sizing.quantity import number, q
from compute.sizing.vocabulary import Causal

SIZES = range(7)
WINDOWS = (None, 1, 2, 3, 5, 8, 20)


def counted_one_by_one(n: int, past: int, mask: MaskKind, window: int | None) -> int:
    """Every query with every key, by the rules of compute's mask."""
    return sum(
        (key <= query or mask == "full") and (window is None or abs(query - key) < window)
        for query in range(past, past + n)
        for key in range(past + n)
    )


def closed(
    n: int, past: int, mask: MaskKind, window: int | None, causal: Causal = "exact"
) -> object:
    behind = q("past", past) if past else number(0)
    return pairs.visible(q("n", n), behind, mask, window, causal).value


@pytest.mark.parametrize("mask", get_args(MaskKind))
def test_exact_pairs_are_those_that_a_loop_counts(mask: MaskKind) -> None:
    for n, past, window in product(range(1, 8), SIZES, WINDOWS):
        counted = counted_one_by_one(n, past, mask, window)
        assert closed(n, past, mask, window) == counted, (n, past, window)


def test_full_counts_every_key_of_every_query_whatever_the_window() -> None:
    for n, past, window in product(range(1, 6), SIZES, WINDOWS):
        assert closed(n, past, "causal", window, "full") == sum(past + n for _ in range(n))


def test_half_is_half_of_full_and_is_not_rounded() -> None:
    for n, past, window in product(range(1, 6), SIZES, WINDOWS):
        full = Fraction(str(closed(n, past, "causal", window, "full")))
        assert closed(n, past, "causal", window, "half") == full / 2
    assert closed(3, 0, "causal", None, "half") == Fraction(9, 2)


def test_a_mask_that_hides_nothing_is_not_halved() -> None:
    assert closed(5, 0, "full", None, "half") == 25


def test_exact_is_half_and_half_a_query_more_without_a_cache() -> None:
    for n in range(1, 30):
        half = Fraction(str(closed(n, 0, "causal", None, "half")))
        assert closed(n, 0, "causal", None) == half + Fraction(n, 2)


@pytest.mark.parametrize("mask", get_args(MaskKind))
@pytest.mark.parametrize("causal", get_args(Causal))
def test_steps_together_are_the_steps_one_by_one(mask: MaskKind, causal: Causal) -> None:
    for steps, past, window in product(range(1, 8), range(1, 7), WINDOWS):
        together = pairs.over_steps(q("steps", steps), q("past", past), mask, window, causal)
        alone = (last_query(past + step, mask, window, causal) for step in range(steps))
        assert together.value == sum(alone), (steps, past, window)


def last_query(past: int, mask: MaskKind, window: int | None, causal: Causal) -> Fraction:
    """Keys that one query behind so many keys counts."""
    if causal == "exact":
        return Fraction(counted_one_by_one(1, past, mask, window))
    halved = causal == "half" and mask == "causal"
    return Fraction(past + 1, 2 if halved else 1)


def test_a_cached_step_sees_itself() -> None:
    assert closed(1, 1023, "causal", None) == 1024


def test_the_size_of_a_prompt_does_not_change_what_counting_it_takes() -> None:
    window = 4096
    ends = sum(min(i, window) for i in range(1, window))
    assert closed(10**12, 0, "causal", window) == ends + (10**12 - window + 1) * window
