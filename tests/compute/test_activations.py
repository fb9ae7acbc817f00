"""Activations against their formulas in float64, and what a caller may rely on."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from compute.activations import ACTIVATIONS, activate
from compute.erf import BLOCK
from compute.types import Array

SLOPE = math.sqrt(2.0 / math.pi)
FORMULAS: dict[str, Callable[[float], float]] = {
    "gelu": lambda x: 0.5 * x * math.erfc(-x / math.sqrt(2.0)),
    "gelu_tanh": lambda x: 0.5 * x * (1.0 + math.tanh(SLOPE * (x + 0.044715 * x**3))),
    "quick_gelu": lambda x: x / (1.0 + math.exp(-1.702 * x)),
    "relu": lambda x: max(x, 0.0),
    "relu2": lambda x: max(x, 0.0) ** 2,
    "silu": lambda x: x / (1.0 + math.exp(-x)),
    "identity": lambda x: x,
}
GELUS = ("gelu", "gelu_tanh", "quick_gelu")
SMOOTH = (*GELUS, "silu")
EVERY = pytest.mark.parametrize("name", sorted(FORMULAS))
BOTH = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def formula(name: str, x: Array) -> Array:
    return np.array([FORMULAS[name](value) for value in x.tolist()])


def bits(x: Array) -> bytes:
    return np.ascontiguousarray(x).tobytes()


def sample(dtype: type, count: int = 2 * BLOCK + 7) -> Array:
    """Everyday numbers, with the special ones and both zeros among them."""
    x = np.random.default_rng(5).normal(0.0, 3.0, count).astype(dtype)
    x[2:12] = (0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40, -1e-40, 1e30, -1e30, -90.0)
    return x


def test_the_table_has_a_formula_for_each_name() -> None:
    assert set(ACTIVATIONS) == set(FORMULAS)


@EVERY
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    # one rounding at |x| is 6e-8 |x| or 1.1e-16 |x|; exp, erf and the product add a few
    [(np.float32, 2e-7), (np.float64, 6e-16)],
)
def test_values_follow_the_formula(name: str, dtype: type, tolerance: float) -> None:
    random = np.random.default_rng(3)
    x = np.concatenate([random.uniform(-30, 30, 20_011), random.normal(0, 1, 20_011)])
    rounded = x.astype(dtype)
    exact = formula(name, rounded.astype(np.float64))
    size = np.maximum(np.maximum(1.0, np.abs(x)), np.abs(exact))  # of a square it is the square
    error = np.abs(activate(name, rounded) - exact) / size
    assert error.max() <= tolerance


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("gelu", 3.0, 2.99595031),
        ("gelu_tanh", 3.0, 2.99636261),
        ("gelu", -1.0, -0.15865525),
        ("gelu_tanh", -1.0, -0.15880801),
        ("quick_gelu", 1.0, 0.84579577),
    ],
)
def test_known_values_of_the_three_gelus(name: str, x: float, expected: float) -> None:
    # the known values have eight decimals
    assert activate(name, np.array([x]))[0] == pytest.approx(expected, abs=5.1e-9)


def test_erf_and_tanh_gelu_differ_most_at_2_70_by_4_73e_4() -> None:
    x = np.linspace(0.0, 6.0, 60_001)
    gap = np.abs(activate("gelu", x) - activate("gelu_tanh", x))
    assert gap.max() == pytest.approx(4.73e-4, abs=5e-7)
    assert x[gap.argmax()] == pytest.approx(2.70, abs=5e-3)


@BOTH
@pytest.mark.parametrize(("one", "other"), [GELUS[:2], GELUS[1:], GELUS[::2]])
def test_no_gelu_is_another_one(one: str, other: str, dtype: type) -> None:
    x = np.array([-1.0, 1.0, 3.0], dtype)
    assert (np.abs(activate(one, x) - activate(other, x)) > 1e-7).all()


@EVERY
@BOTH
def test_dtype_and_shape_are_those_of_x_and_x_is_left_alone(name: str, dtype: type) -> None:
    for shape in ((), (0,), (2, 3, 5)):
        x = np.full(shape, -0.5, dtype)
        y = activate(name, x)
        assert (y.shape, y.dtype) == (shape, np.dtype(dtype))
        assert (x == -0.5).all()


@EVERY
@BOTH
def test_in_place_gives_the_same_bits_as_into_new_memory(name: str, dtype: type) -> None:
    x = sample(dtype)
    elsewhere, inside = np.empty_like(x), x.copy()
    assert activate(name, x, out=elsewhere) is elsewhere
    assert activate(name, inside, out=inside) is inside
    assert bits(elsewhere) == bits(inside) == bits(activate(name, x))


@EVERY
@BOTH
def test_an_element_has_the_same_bits_alone_and_in_a_slice_of_any_length(
    name: str, dtype: type
) -> None:
    x = sample(dtype)
    x[500:600] = -0.0
    whole = activate(name, x)
    alone = [bits(activate(name, x[i : i + 1])) for i in range(600)]
    assert b"".join(alone) == bits(whole[:600])
    start, end = BLOCK - 1000, BLOCK + 1000
    for length in (3, 7, 31, 67):
        parts = [bits(activate(name, x[i : i + length])) for i in range(start, end, length)]
        assert b"".join(parts)[: 2000 * x.itemsize] == bits(whole[start:end])


@EVERY
@BOTH
def test_the_memory_layouts_of_x_and_out_change_no_bit(name: str, dtype: type) -> None:
    x = sample(dtype, 53 * 1511).reshape(53, 1511)
    expected = bits(activate(name, x))
    wide = np.zeros((53, 2 * 1511), dtype)
    unaligned = np.zeros(x.nbytes + 1, np.uint8)[1:].view(dtype).reshape(x.shape)
    columns = np.zeros_like(x, order="F")
    for layout in (wide[:, :1511], wide[:, ::2], wide[::-1, 1511:], unaligned, columns):
        layout[...] = x
        assert bits(activate(name, layout)) == expected
        assert bits(activate(name, layout, out=np.empty_like(x))) == expected
        assert bits(activate(name, x, out=np.empty_like(layout))) == expected
        assert bits(activate(name, layout, out=layout)) == expected


@EVERY
def test_out_may_overlap_x(name: str) -> None:
    memory = sample(np.float32)
    expected = bits(activate(name, memory[1:].copy()))
    assert bits(activate(name, memory[1:], out=memory[:-1])) == expected


@EVERY
@BOTH
def test_large_inputs_have_their_limits_and_raise_no_flag(name: str, dtype: type) -> None:
    x = np.array([100.0, 1000.0, 1e30, math.inf], dtype)
    small = np.array([math.nan, 0.0, -0.0, 1e-40, -1e-40], dtype)
    with np.errstate(all="raise"):
        up, down = activate(name, x), activate(name, -x)
        middle = activate(name, small)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(up, x * x if name == "relu2" else x)
    assert math.isnan(middle[0])
    assert (middle[1:3] == 0.0).all()
    # silu and quick_gelu are about -100 exp(-100) at -100: nothing beside 1
    assert (down == -x).all() if name == "identity" else (np.abs(down) < 1e-41).all()


@pytest.mark.parametrize("name", SMOOTH)
@BOTH
def test_far_below_zero_the_result_is_zero_and_never_nan(name: str, dtype: type) -> None:
    x = np.array([-800.0, -999.0, -1000.0, -1001.0, -3e38, -math.inf], dtype)
    assert (activate(name, x) == 0.0).all()


@BOTH
def test_relu2_is_the_square_of_relu_to_the_bit(dtype: type) -> None:
    x = np.random.default_rng(1).normal(0.0, 3.0, BLOCK + 7).astype(dtype)
    half = activate("relu", x)
    assert bits(activate("relu2", x)) == bits(half * half)
    assert activate("relu2", np.array([-2.0, 0.0, 0.5, 3.0], dtype)).tolist() == [0, 0, 0.25, 9]


@BOTH
def test_identity_returns_x_itself_unless_out_is_given(dtype: type) -> None:
    x = sample(dtype)
    assert activate("identity", x) is x
    assert activate("identity", x, out=np.empty_like(x)) is not x


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"gelu, gelu_tanh, .*; got 'swish'"):
        activate("swish", np.ones(3))


def test_an_out_that_does_not_fit_is_refused() -> None:
    x = np.ones((3, 5), np.float32)
    with pytest.raises(ValueError, match=r"shape of x, \(3, 5\); got \(5,\)"):
        activate("gelu", x, out=np.empty(5, np.float32))
    with pytest.raises(TypeError, match="got float32 and float64"):
        activate("gelu", x, out=np.empty((3, 5)))
    with pytest.raises(TypeError, match="got int64"):
        activate("relu", np.ones(3, np.int64))


def test_frozen_memory_is_never_written() -> None:
    x = np.ones((3, 5), np.float32)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        activate("gelu", x, out=x)
    assert (x == 1.0).all()
