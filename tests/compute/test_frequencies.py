"""RoPE's frequencies: the rules pair by pair, and numbers of transformers 5.24.

Its float32 leaves six digits.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest

from compute.config import PositionConfig, RopeScaling, position_config, yarn_attention_factor
from compute.frequencies import frequencies
from compute.types import Ints

LLAMA3 = RopeScaling(
    kind="llama3",
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_positions=8192,
)
YARN = RopeScaling(kind="yarn", factor=4.0, original_positions=64, attention_factor=1.1386294)
DYNAMIC = RopeScaling(kind="dynamic", factor=4.0, original_positions=16)
LINEAR = RopeScaling(kind="linear", factor=4.0)


def rope(width: int, theta: float, scaling: RopeScaling) -> PositionConfig:
    return position_config("rope", width, theta=theta, scaling=scaling)


def ids(length: int) -> Ints:
    """An input of a length: its last position is one less."""
    return np.arange(length)


# Numbers of transformers.


@pytest.mark.parametrize(
    ("scaling", "width", "theta", "length", "expected"),
    [
        (RopeScaling(), 8, 1e4, 999, [1, 0.1, 0.01, 0.001]),
        (LINEAR, 8, 1e4, 999, [0.25, 0.025, 0.0025, 0.00025]),
        (DYNAMIC, 8, 1e4, 40, [1, 0.0522757955, 0.00273275888, 0.000142857141]),
        (DYNAMIC, 8, 1e4, 16, [1, 0.1, 0.01, 0.001]),
        (YARN, 8, 1e4, 999, [1, 0.0625, 0.0025, 0.00025]),
        (
            RopeScaling(kind="yarn", factor=4.0, original_positions=256),
            16,
            1e4,
            1,
            [1, 0.25693506, 0.0625, 0.0138349654, 0.0025, 0.000790569466, 0.00025, 7.90569421e-05],
        ),
        (
            RopeScaling(
                kind="yarn", factor=8.0, original_positions=4096, beta_fast=16.0, beta_slow=2.0
            ),
            16,
            5e5,
            1,
            [
                *(1, 0.193922758, 0.0376060307, 0.0041021239),
                *(0.000176776681, 3.42810235e-05, 6.64786967e-06, 1.28917316e-06),
            ],
        ),
        (
            LLAMA3,
            16,
            5e5,
            1,
            [
                *(1, 0.193922758, 0.0376060307, 0.00729266508),
                *(0.000524846022, 3.42810235e-05, 6.64786967e-06, 1.28917316e-06),
            ],
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, RopeScaling) else None,
)
def test_frequencies_are_those_of_transformers(
    scaling: RopeScaling, width: int, theta: float, length: int, expected: list[float]
) -> None:
    found = frequencies(rope(width, theta, scaling), ids(length)).radians
    np.testing.assert_allclose(found, expected, rtol=2e-6)


# The rules, written out for one pair.


def plain(i: int, r: int, theta: float, s: RopeScaling, n: int) -> float:
    return theta ** (-2 * i / r)


def linear(i: int, r: int, theta: float, s: RopeScaling, n: int) -> float:
    return theta ** (-2 * i / r) / s.factor


def dynamic(i: int, r: int, theta: float, s: RopeScaling, n: int) -> float:
    longer = max(n, s.original_positions) / s.original_positions
    grown = theta * (s.factor * longer - (s.factor - 1)) ** (r / (r - 2))
    return grown ** (-2 * i / r)


def yarn(i: int, r: int, theta: float, s: RopeScaling, n: int) -> float:
    edges = [
        r * math.log(s.original_positions / (beta * 2 * math.pi)) / (2 * math.log(theta))
        for beta in (s.beta_fast, s.beta_slow)
    ]
    low, high = max(math.floor(edges[0]), 0), min(math.ceil(edges[1]), r - 1)
    high = high + 0.001 if low == high else high
    slowed = min(max((i - low) / (high - low), 0.0), 1.0)
    own = theta ** (-2 * i / r)
    return (1 - slowed) * own + slowed * own / s.factor


def llama3(i: int, r: int, theta: float, s: RopeScaling, n: int) -> float:
    own = theta ** (-2 * i / r)
    wavelength = 2 * math.pi / own
    if wavelength < s.original_positions / s.high_freq_factor:
        return own
    if wavelength > s.original_positions / s.low_freq_factor:
        return own / s.factor
    smooth = (s.original_positions / wavelength - s.low_freq_factor) / (
        s.high_freq_factor - s.low_freq_factor
    )
    return (1 - smooth) * own / s.factor + smooth * own


RULES: dict[str, Callable[[int, int, float, RopeScaling, int], float]] = {
    "none": plain,
    "linear": linear,
    "dynamic": dynamic,
    "yarn": yarn,
    "llama3": llama3,
}


def drawn(kind: str, rng: np.random.Generator) -> RopeScaling:
    low = float(rng.uniform(0.25, 2.0))
    return RopeScaling(
        kind=kind,
        factor=float(rng.uniform(1.0, 40.0)),
        original_positions=int(rng.integers(4, 9000)),
        low_freq_factor=low,
        high_freq_factor=low * float(rng.uniform(1.5, 8.0)),
        beta_fast=float(rng.uniform(4.0, 64.0)),
        beta_slow=float(rng.uniform(0.25, 2.0)),
        attention_factor=float(rng.uniform(0.5, 1.5)),
    )


@pytest.mark.parametrize("kind", RULES)
def test_every_pair_follows_its_rule(kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    for _ in range(200):
        scaling, r = drawn(kind, rng), 2 * int(rng.integers(2, 65))
        theta, n = float(rng.choice([100.0, 1e4, 5e5, 1e6])), int(rng.integers(1, 20_000))
        found = frequencies(rope(r, theta, scaling), np.array([0, n - 1])).radians
        expected = [RULES[kind](i, r, theta, scaling, n) for i in range(r // 2)]
        # a power of a grown theta may lose a few digits
        np.testing.assert_allclose(found, expected, rtol=1e-13, err_msg=str(scaling))


def test_only_yarn_has_a_factor_of_its_own() -> None:
    for kind in RULES:
        scaling = drawn(kind, np.random.default_rng(0))
        found = frequencies(rope(8, 1e4, scaling), ids(5)).factor
        assert found == (scaling.attention_factor if kind == "yarn" else 1.0)


def test_yarns_attention_factor_grows_with_the_logarithm() -> None:
    assert yarn_attention_factor(4.0) == pytest.approx(1.138629436111989, rel=1e-15)
    assert yarn_attention_factor(1.0) == yarn_attention_factor(0.5) == 1.0


def test_dynamic_frequencies_of_a_batch_are_those_of_each_row() -> None:
    rows = np.stack([np.arange(5), np.arange(5) + 40, np.array([3, 90, 2, 1, 0])])
    together = frequencies(rope(8, 1e4, DYNAMIC), rows).radians
    assert together.shape == (3, 4)
    for row, found in zip(rows, together, strict=True):
        assert found.tolist() == frequencies(rope(8, 1e4, DYNAMIC), row).radians.tolist()
    assert (
        together[0].tolist() == frequencies(rope(8, 1e4, RopeScaling()), rows[0]).radians.tolist()
    )


@pytest.mark.parametrize("kind", ["none", "linear", "yarn", "llama3"])
def test_other_frequencies_do_not_depend_on_the_input(kind: str) -> None:
    position = rope(8, 1e4, drawn(kind, np.random.default_rng(3)))
    one, other = frequencies(position, ids(3)), frequencies(position, ids(9000))
    assert one.radians.tolist() == other.radians.tolist()
    assert one.radians.shape == (4,)
