"""Slopes of activations: those of differences, the limits far out, the convention at a kink."""

from math import inf, nan

import numpy as np
import pytest

from compute.activations import ACTIVATIONS, activate
from compute.derivatives.slopes import SLOPES, slope

POINTS = np.linspace(-8.0, 8.0, 1001)
POINTS = POINTS[np.abs(POINTS) > 1e-9]
SMOOTH = sorted(set(ACTIVATIONS) - {"relu", "relu2", "identity"})


def test_every_activation_has_a_slope() -> None:
    assert SLOPES.keys() == ACTIVATIONS.keys()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_slope_is_that_of_differences(name: str) -> None:
    h = 1e-3
    wide, narrow = (activate(name, POINTS + x) - activate(name, POINTS - x) for x in (h, h / 2))
    found = (8.0 * narrow - wide) / (6.0 * h)
    roundings = 1e-16 / h * max(1.0, float(np.abs(activate(name, POINTS)).max()))
    assert np.abs(slope(name, POINTS) - found).max() <= 1e-11 + 10 * roundings


@pytest.mark.parametrize("name", ["relu", "relu2"])
def test_slope_at_a_kink_is_0(name: str) -> None:
    assert slope(name, np.array([0.0, -0.0])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SMOOTH)
def test_slope_of_a_smooth_one_is_0_or_1_far_out(name: str, dtype: str) -> None:
    far = np.array([-inf, -1e38, -1e5, 1e5, 1e38, inf], dtype)
    found = slope(name, far)
    assert found.dtype == dtype
    assert found.tolist() == [0.0] * 3 + [1.0] * 3
    assert np.isnan(slope(name, np.array([nan], dtype))).all()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_float32_is_float64_rounded(name: str) -> None:
    points = POINTS.astype(np.float32)
    found, exact = slope(name, points), slope(name, points.astype(np.float64))
    assert found.dtype == np.float32
    assert np.abs(found - exact).max() <= 4e-6 * max(1.0, float(np.abs(exact).max()))
