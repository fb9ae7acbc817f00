"""Words, numbers and widths of a picture."""

import numpy as np
import pytest

from service.picture import words
from service.picture.fitting import beside, kept, left_out
from service.picture.tensor import tensor


def test_nulls_are_read_as_the_numbers_they_stand_for() -> None:
    told = {"symbol": None, "axes": ["position", "d_model"], "shape": [2, 3], "dtype": "float32"}
    data = [[None, 1.0, None], [None, None, 2.0]]
    runs = {"-inf": [[0, 1]], "+inf": [[2, 2]], "nan": [[4, 1]]}
    read = tensor("embed", {**told, "data": data, "nonfinite": runs})  # type: ignore[typeddict-item]
    expected = [[-np.inf, 1, np.inf], [np.inf, np.nan, 2]]
    np.testing.assert_array_equal(read.values, expected)


@pytest.mark.parametrize(
    ("number", "written"),
    [(0, "0"), (0.00002, "2e-05"), (0.0042, "0.004"), (0.25, "0.25"), (12.34, "12.3"),
     (456.7, "457"), (98765, "98765"), (3e8, "3e+08"), (float("nan"), "nan"),
     (float("-inf"), "-inf"), (float("inf"), "inf")],
)  # fmt: skip
def test_sizes_take_five_cells(number: float, written: str) -> None:
    assert words.size(number) == written


@pytest.mark.parametrize(
    ("chance", "written"),
    [(1, "100.0%"), (0.99999, ">99.9%"), (0.5, "50.0%"), (1e-9, "<0.1%"), (0, "0.0%")],
)
def test_chance_is_not_rounded_to_all_or_nothing(chance: float, written: str) -> None:
    assert words.percent(chance) == written


@pytest.mark.parametrize(
    ("count", "written"), [(724, "724 "), (8830, "8.83 k"), (999_600, "1 M"), (2e15, "2,000 T")]
)
def test_counts_are_rounded(count: int, written: str) -> None:
    assert words.rounded(count) == written


def test_cut_keeps_start_and_end_and_names_the_rest() -> None:
    places = kept(10, 5)
    assert places == [0, 1, None, 8, 9]
    assert left_out(places, range(100, 110)) == "102 to 107"
    assert left_out(kept(3, 5), range(3)) == ""


def test_drawings_stand_beside_each_other_without_touching() -> None:
    one, other = [words.text("ab"), words.text("c")], [words.text("塔d")]
    assert [line.plain for line in beside([one, other], 20)] == ["ab    塔d", "c"]
    assert [line.plain for line in beside([one, other], 8)] == ["ab", "c", "", "塔d"]
