"""Characters of numbers and brackets against what orjson writes."""

import itertools

import numpy as np
import orjson
import pytest

from compute import stages
from compute.selection import Wanted
from compute.sizing.tracing import json_bytes

EXTREME = {
    "float32": (-1.2345679e-06, -1.1754944e-38, -8796093022208.0, -1.0000001e-05, -3.4028235e38),
    "float64": (-1.2345678901234567e-05, -2.2250738585072014e-308, -1234567890123456.7, -5e-324),
}


def text(values: object) -> bytes:
    return orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY)


def lengths(values: np.ndarray) -> np.ndarray:
    """Characters of each number."""
    commas = np.flatnonzero(np.frombuffer(text(values), np.uint8) == ord(","))
    ends = np.concatenate([[0], commas, [len(text(values)) - 1]])
    return np.diff(ends) - 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_longest_number_is_as_long_as_is_said(dtype: str) -> None:
    told = [len(text(np.array([x], dtype))) - 2 for x in EXTREME[dtype]]
    assert max(told) == json_bytes.LONGEST[dtype]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_number_of_any_size_is_longer(dtype: str) -> None:
    """Random bits below each exponent; all 2^32 of float32 were gone through once."""
    bits, fraction = (np.uint32, 23) if dtype == "float32" else (np.uint64, 52)
    rng = np.random.default_rng(0)
    exponents = range(255) if dtype == "float32" else range(0, 2047, 3)
    sign = bits(1) << bits(8 * np.dtype(bits).itemsize - 1)
    for exponent in exponents:
        drawn = rng.integers(0, 1 << fraction, 500, bits)
        values = (sign | (bits(exponent) << bits(fraction)) | drawn).view(dtype)
        assert lengths(values).max() <= json_bytes.LONGEST[dtype], exponent


@pytest.mark.parametrize("shape", [(5,), (3, 2), (1, 1), (2, 3, 4), (2, 1, 1, 7), (3, 5, 2, 1, 2)])
def test_brackets_and_commas_are_those_of_the_text(shape: tuple[int, ...]) -> None:
    told = text(np.zeros(shape, np.float32))
    assert json_bytes.brackets(shape) == told.count(b"[") + told.count(b"]")
    assert json_bytes.between(shape) == len(told) - 3 * told.count(b"0.0")


def pairs(rows: int, window: int | None, *, causal: bool) -> list[tuple[int, int]]:
    """Query and key of each pair that may meet, one by one."""
    return [
        (query, key)
        for query, key in itertools.product(range(rows), repeat=2)
        if (not causal or key <= query) and (window is None or abs(query - key) < window)
    ]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [None, 1, 2, 5, 11, 30])
@pytest.mark.parametrize("rows", [1, 2, 7, 11])
def test_visible_pairs_are_those_that_a_mask_leaves(
    rows: int, window: int | None, causal: bool
) -> None:
    exact = pairs(rows, window, causal=causal)
    assert json_bytes.visible(rows, window, causal=causal) == len(exact)
    rng = np.random.default_rng(rows)
    queries, keys = (rng.integers(0, rows, 6).tolist() for _ in range(2))
    chosen = sum((query, key) in exact for query in queries for key in keys)
    assert json_bytes.visible_of(queries, keys, window, causal=causal) == chosen


def wanted(name: str, **slices: object) -> Wanted:
    return Wanted(f"blocks.0.{name}", stages.BY_NAME[name], {}, bool(slices.get("summary")))


def test_experts_are_whole_numbers_below_their_count() -> None:
    axes = {"n": 7, "c": 2, "e": 129}
    assert json_bytes.longest(wanted("ffn.experts"), axes, "float32") == len("128")
    summed = json_bytes.longest(wanted("ffn.experts", summary=True), axes, "float32")
    assert summed == json_bytes.LONGEST["float64"]  # whole numbers are summed up in float64


def test_lone_nulls_of_a_huge_tensor_count_with_what_is_said_of_each() -> None:
    """[99999998,1], and null: a tensor of 10^8 numbers, each second one not finite."""
    size = 10**8
    most = json_bytes.longest(wanted("attn_out"), {"n": size // 10, "d": 10}, "float32")
    assert most >= len("null") + len(f"[{size - 1},1],")
