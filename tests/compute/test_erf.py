"""erf against math.erf: at every magnitude, in every memory layout."""

import math

import numpy as np
import pytest

from compute.erf import BLOCK, erf
from compute.types import Array

BOTH = pytest.mark.parametrize("dtype", [np.float32, np.float64])
BORDERS = (1.0, 2.0, 3.0, 4.5, 6.0)  # between the float64 pieces
SMALLEST_NORMAL = 2.0**-1022


def reference(x: Array) -> Array:
    return np.array([math.erf(value) for value in x.tolist()])


def beside(value: float, count: int = 3000) -> Array:
    """The float64 numbers nearest to a positive value, on both sides."""
    bits = int(np.float64(value).view(np.int64))
    return np.arange(max(0, bits - count), bits + count).view(np.float64)


def bits(x: Array) -> bytes:
    return np.ascontiguousarray(x).tobytes()


def sample(dtype: type, count: int = 3 * BLOCK + 7) -> Array:
    """Numbers for every piece and both signs, with the special ones among them."""
    x = np.random.default_rng(11).normal(0.0, 3.0, count).astype(dtype)
    x[5:14] = (0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40, -1e-40, 1e30, 0.5)
    return x


@pytest.mark.parametrize(
    "x",
    [
        np.random.default_rng(1).uniform(0.0, 6.5, 200_000),
        10.0 ** np.random.default_rng(2).uniform(-323.0, 308.0, 50_000),
        10.0 ** np.random.default_rng(3).uniform(-12.0, 1.0, 100_000),
        np.concatenate([beside(border) for border in BORDERS]),
        np.concatenate([beside(0.0), beside(SMALLEST_NORMAL), beside(1e-300)]),
    ],
    ids=["uniform", "all magnitudes", "small", "borders of pieces", "subnormal"],
)
def test_float64_is_within_two_ulp_of_math_erf(x: Array) -> None:
    expected = reference(x)
    ulp = np.abs(erf(x) - expected) / np.spacing(expected)
    assert ulp.max() <= 2.0


def test_float32_error_is_what_the_docstring_states() -> None:
    # every 1009th float32 from the smallest normal one to 5; the looser of the stated figures,
    # since which tanh NumPy takes is the machine's choice
    first, last = (int(np.float32(value).view(np.int32)) for value in (1.1754944e-38, 5.0))
    x = np.arange(first, last, 1009, dtype=np.int32).view(np.float32)
    expected = reference(x)
    error = np.abs(erf(x) - expected)
    assert error.max() <= 1.8e-7
    assert (error / expected).max() <= 3.4e-7


def test_float32_subnormals_are_within_two_ulp() -> None:
    x = np.arange(0, 1 << 23, 101, dtype=np.int32).view(np.float32)
    assert np.abs(erf(x) - reference(x)).max() <= 2 * 2.0**-149


def test_float32_never_leaves_the_unit_interval_and_reaches_its_ends() -> None:
    x = np.concatenate([np.linspace(2.0, 6.0, 100_003), [1e6, 1e19, 3e38]]).astype(np.float32)
    y = erf(x)
    assert y.max() == 1.0
    assert (y[x >= 4.5] == 1.0).all()


@BOTH
def test_erf_is_odd_to_the_bit(dtype: type) -> None:
    x = np.abs(sample(dtype))
    known = x[~np.isnan(x)]
    assert bits(erf(-known)) == bits(-erf(known))


@BOTH
def test_special_values_keep_their_sign_and_raise_no_flag(dtype: type) -> None:
    x = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, 1e30, -1e30, 1e-40, -1e-40], dtype)
    with np.errstate(all="raise"):
        y = erf(x)
    np.testing.assert_array_equal(y[:7], [0.0, -0.0, 1.0, -1.0, math.nan, 1.0, -1.0])
    assert np.signbit(y).tolist() == np.signbit(x).tolist()


@BOTH
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 5)])
def test_shape_and_dtype_are_those_of_x(dtype: type, shape: tuple[int, ...]) -> None:
    y = erf(np.full(shape, 0.5, dtype))
    assert y.shape == shape
    assert y.dtype == dtype
    np.testing.assert_allclose(y, math.erf(0.5), rtol=3.4e-7)


@BOTH
def test_an_element_has_the_same_bits_alone_and_in_a_slice_of_any_length(dtype: type) -> None:
    x = sample(dtype)
    whole = erf(x)
    alone = [bits(erf(x[i : i + 1])) for i in range(500)]
    assert b"".join(alone) == bits(whole[:500])
    start, end = BLOCK - 2000, BLOCK + 2000
    for length in (3, 7, 13, 31, 67, 1001):
        parts = [bits(erf(x[i : i + length])) for i in range(start, end, length)]
        assert b"".join(parts)[: 4000 * x.itemsize] == bits(whole[start:end])


@BOTH
def test_the_memory_layout_changes_no_bit(dtype: type) -> None:
    x = sample(dtype, 101 * 1009).reshape(101, 1009)
    expected = bits(erf(x))
    strided = np.zeros((101, 2 * 1009), dtype)[:, ::2]
    unaligned = np.zeros(x.nbytes + 1, np.uint8)[1:].view(dtype).reshape(x.shape)
    reverse = np.zeros_like(x)[::-1, ::-1]
    for layout in (strided, unaligned, reverse, np.zeros_like(x, order="F")):
        layout[...] = x
        assert bits(erf(layout)) == expected
    row = np.broadcast_to(x[0], x.shape)
    assert bits(erf(row)) == bits(erf(x[0])) * len(x)


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, np.int64, ">f4"])
def test_another_dtype_is_refused(dtype: type | str) -> None:
    with pytest.raises(TypeError, match="float32 or float64"):
        erf(np.ones(3, dtype))


def test_the_script_fits_the_tables_in_use() -> None:
    pytest.importorskip("mpmath")
    from compute import erf as module  # noqa: PLC0415 - its tables, not the function
    from scripts import fit_erf  # noqa: PLC0415 - needs mpmath

    problems = (fit_erf.NEAR_ZERO, *fit_erf.PIECES, fit_erf.FLOAT32)
    fitted = [tuple(t) for p in problems for t in fit_erf.tables(p, fit_erf.remez(p))]
    assert fitted == [
        module._NEAR_ZERO,
        *(piece.polynomial for piece in module._PIECES),
        module._TANH_P,
        module._TANH_Q,
    ]
