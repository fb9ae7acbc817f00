"""Tensors of a request: lists and base64 give the same array; each fault has its place."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from pydantic import TypeAdapter, ValidationError

from compute.errors import MOST_FAULTS, Fault
from schemas.binary import Binary
from schemas.nested import BOOLEANS, NUMBERS, WHOLE_NUMBERS, Kind
from schemas.tensors import Posted, Rows

KINDS = {"numbers": NUMBERS, "whole numbers": WHOLE_NUMBERS, "booleans": BOOLEANS}


def read(raw: object, kind: Kind = NUMBERS, ranks: range = range(2, 4)) -> np.ndarray:
    """What a field of this kind makes of a JSON value."""
    adapter = TypeAdapter(Annotated[npt.NDArray[np.generic], Posted(kind, ranks)])
    found: np.ndarray = adapter.validate_python(raw, strict=True)
    return found


def faults(raw: object, kind: Kind = NUMBERS, ranks: range = range(2, 4)) -> list[Fault]:
    """The faults of a value that is refused, of those inside a tensor."""
    with pytest.raises(ValidationError) as raised:
        read(raw, kind, ranks)
    return [
        fault
        for details in raised.value.errors()
        for fault in details.get("ctx", {}).get("faults", ())
    ]


def places(found: Sequence[Fault]) -> list[tuple[tuple[str | int, ...], str]]:
    return [(fault.place, fault.code) for fault in found]


def packed(values: np.ndarray, **changes: object) -> dict[str, Any]:
    """An array as a request packs it."""
    data = b64encode(values.tobytes()).decode()
    return {
        "dtype": values.dtype.name,
        "shape": list(values.shape),
        "data": data,
    } | changes


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ([[1, 2.5], [3, 4]], []),
        ([[1, True]], [((0, 1), "wrong_type")]),
        ([["1.5", 2]], [((0, 0), "wrong_type")]),
        ([[1, 2], [None, 4]], [((1, 0), "wrong_type")]),
        ([[1, 2], [3]], [((1,), "ragged")]),
        ([[1, 2], [3, "x"], [4, 5, 6], 7], [((1, 1), "wrong_type"), ((2,), "ragged"), ((3,), "wrong_type")]),  # noqa: E501
        ([[]], [((0,), "empty")]),
        ([[], [1]], [((0,), "empty")]),
        ([[1], []], [((1,), "empty")]),
        ([], [((), "empty")]),
        ([1, 2], [((), "rank_mismatch")]),
        (1, [((), "rank_mismatch")]),
        ("1", [((), "rank_mismatch")]),
        ([[[[1]]]], [((), "rank_mismatch")]),
        ([None, [1, 2]], [((0,), "wrong_type")]),
        ([[[1, 2]], [[3], [4, 5]]], [((1,), "ragged"), ((1, 0), "ragged")]),
        ([[1, {"a": 2}]], [((0, 1), "wrong_type")]),
        ([[1, [2]]], [((0, 1), "wrong_type")]),
        ([[1, 2, [3]], [4, 5, 6]], [((0, 2), "wrong_type")]),
        ([7, [1, 2]], [((0,), "wrong_type")]),
        ([[float("inf"), 10**400]], [((0, 0), "not_finite"), ((0, 1), "not_finite")]),
    ],
)  # fmt: skip
def test_fault_of_a_nested_list_is_at_its_place(raw: object, expected: list[Any]) -> None:
    if expected:
        assert places(faults(raw)) == expected
    else:
        assert read(raw).tolist() == raw


_TYPES = {"numbers": (int, float), "whole numbers": (int,), "booleans": (bool,)}


@given(
    st.sampled_from(sorted(KINDS)),
    st.lists(
        st.lists(
            st.sampled_from([0, 1, 0.0, 1.0, -0.0, True, False, 7, 2.5, None, "1", [1], {}])
            | st.integers(-1, 2**70)
            | st.floats(),
            min_size=1,
            max_size=4,
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_lists_are_read_where_every_entry_is_of_the_kind_and_else_refused(
    name: str, rows: list[list[Any]]
) -> None:
    entries = [entry for row in rows for entry in row]
    right = len({*map(len, rows)}) == 1 and all(type(entry) in _TYPES[name] for entry in entries)
    if right and name == "numbers":
        right = all(np.isfinite(float(entry)) for entry in entries)
    if right and name == "whole numbers":
        right = all(0 <= entry <= 2**53 for entry in entries)
    if right:
        found = read(rows, KINDS[name])
        assert found.dtype == KINDS[name].dtype
        assert found.tolist() == rows
        assert [*map(np.signbit, found.flat)] == [*map(np.signbit, map(float, entries))]
    else:
        assert faults(rows, KINDS[name])


@pytest.mark.parametrize("width", [2, 1000])
@pytest.mark.parametrize("wrong", [True, False])
def test_truth_value_hides_among_no_numbers(wrong: bool, width: int) -> None:
    for fill in (0, 1, 0.0, 1.0, 0.5):
        rows = [[fill] * width for _ in range(3)]
        rows[1][width - 1] = wrong
        assert places(faults(rows)) == [((1, width - 1), "wrong_type")]


def test_float32_stays_float32_where_it_is_taken_as_sent() -> None:
    values = np.array([[0.1, -0.0], [3e38, 1e-45]], np.float32)
    adapter = TypeAdapter(Rows)
    entry = Binary("F32", values.shape, memoryview(values.tobytes()))
    for raw in (packed(values), entry):
        found = adapter.validate_python(raw, strict=True)
        assert found.dtype == np.float32
        assert found.tobytes() == values.tobytes()
        assert read(raw).dtype == np.float64
        assert read(raw).tolist() == values.tolist()


def test_base64_of_several_pieces_is_one_tensor() -> None:
    values = np.arange(700_000, dtype=np.float64).reshape(7, -1)
    assert np.array_equal(read(packed(values)), values)
    text = packed(values)["data"]
    in_two = f"{text[: (1 << 20) - 2]}=={text[1 << 20 :]}"
    assert places(faults(packed(values, data=in_two))) == [(("data",), "not_base64")]


def test_whole_numbers_are_whole_and_in_bounds() -> None:
    found = faults([0, 1.0, True, -1, 2**53, 2**53 + 1, 10**400], WHOLE_NUMBERS, range(1, 3))
    assert places(found) == [
        ((1,), "wrong_type"),
        ((2,), "wrong_type"),
        ((3,), "out_of_range"),
        ((5,), "out_of_range"),
        ((6,), "out_of_range"),
    ]


def test_booleans_are_nothing_else() -> None:
    found = faults([[True, 1], [0.0, "true"]], BOOLEANS)
    assert places(found) == [((at), "wrong_type") for at in ((0, 1), (1, 0), (1, 1))]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_faults_are_told_to_a_limit(kind: Kind) -> None:
    assert len(faults([[None] * 3 * MOST_FAULTS], kind)) == MOST_FAULTS


@given(
    st.sampled_from([np.float32, np.float64]).flatmap(
        lambda dtype: arrays.arrays(
            dtype,
            arrays.array_shapes(min_dims=2, max_dims=3, max_side=5),
            elements={"allow_nan": False, "allow_infinity": False},
        )
    )
)
def test_packed_numbers_come_back_to_the_bit(values: np.ndarray) -> None:
    found = read(packed(values))
    assert found.dtype == np.float64
    assert found.astype(values.dtype).tobytes() == values.tobytes()
    assert found.tobytes() == read(values.tolist()).tobytes()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_packed_whole_numbers_are_those_of_the_list(dtype: type[np.generic]) -> None:
    values = np.array([[0, 1, 2], [7, 5, 2**31 - 1]], dtype)
    found = read(packed(values), WHOLE_NUMBERS, range(1, 3))
    assert (found.tolist(), found.dtype) == (values.tolist(), np.int64)


def test_packed_booleans_are_those_of_the_list() -> None:
    values = np.array([[True, False], [False, True]])
    assert read(packed(values), BOOLEANS).tolist() == values.tolist()


ONES = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"shape": [2, 4]}, [(("data",), "wrong_length")]),
        ({"shape": [6]}, [(("shape",), "rank_mismatch")]),
        ({"shape": [1, 1, 2, 3]}, [(("shape",), "rank_mismatch")]),
        ({"shape": [1 << 31] * 3}, [(("data",), "wrong_length")]),
        ({"dtype": "float64"}, [(("data",), "wrong_length")]),
        ({"data": ""}, [(("data",), "wrong_length")]),
        ({"data": "-" * 32}, [(("data",), "not_base64")]),
        ({"data": "é" * 32}, [(("data",), "not_base64")]),
        ({"data": "AAAA\n" * 6 + "AA"}, [(("data",), "not_base64")]),
        ({"data": "=" * 32}, [(("data",), "not_base64")]),
        ({"data": "A" * 30 + "=="}, [(("data",), "not_base64")]),
        ({"shape": [1, 2], "data": "AACAPwAAAD9="}, [(("data",), "not_base64")]),  # a bit left over
    ],
)
def test_fault_of_a_packed_tensor_is_at_its_key(
    changes: dict[str, Any], expected: list[Any]
) -> None:
    assert places(faults(packed(ONES, **changes))) == expected


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_packed_number_that_is_not_finite_is_told_by_its_entry(wrong: float) -> None:
    values = ONES.copy()
    values[1, 2] = wrong
    (fault,) = faults(packed(values))
    assert (fault.place, fault.code) == (("data",), "not_finite")
    assert "[1, 2]" in fault.detail


def test_packed_whole_numbers_and_booleans_keep_their_bounds() -> None:
    ids = np.array([[1, -1]], np.int32)
    assert [f.code for f in faults(packed(ids), WHOLE_NUMBERS)] == ["out_of_range"]
    bytes_ = packed(np.array([[0, 2]], np.uint8), dtype="bool")
    assert [f.code for f in faults(bytes_, BOOLEANS)] == ["out_of_range"]


@pytest.mark.parametrize(
    ("changes", "place", "rule"),
    [
        ({"dtype": "float16"}, "dtype", "literal_error"),
        ({"dtype": "int32"}, "dtype", "literal_error"),
        ({"dtype": None}, "dtype", "literal_error"),
        ({"shape": [2, 0]}, "shape", "greater_than_equal"),
        ({"shape": [2, -3]}, "shape", "greater_than_equal"),
        ({"shape": [2, True]}, "shape", "int_type"),
        ({"shape": [2, 3.0]}, "shape", "int_type"),
        ({"shape": 6}, "shape", "list_type"),
        ({"shape": [1] * 9}, "shape", "too_long"),
        ({"shape": [2, 2**31 + 1]}, "shape", "less_than_equal"),
        ({"data": [1, 2]}, "data", "string_type"),
        ({"data": None}, "data", "string_type"),
        ({"byteorder": "big"}, "byteorder", "extra_forbidden"),
    ],
)
def test_packed_tensor_of_another_form_is_refused_by_key(
    changes: dict[str, Any], place: str, rule: str
) -> None:
    with pytest.raises(ValidationError) as raised:
        read(packed(ONES, **changes))
    (error,) = raised.value.errors()
    assert (error["type"], place in error["loc"]) == (rule, True)


@pytest.mark.parametrize("missing", ["dtype", "shape", "data"])
def test_packed_tensor_needs_all_three_keys(missing: str) -> None:
    whole = packed(ONES)
    del whole[missing]
    with pytest.raises(ValidationError) as raised:
        read(whole)
    assert [error["type"] for error in raised.value.errors()] == ["missing"]
