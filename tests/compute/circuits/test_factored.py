"""Circuits by hand: what copies, what negates, what turns; and what a token's row is."""

import numpy as np
import pytest

from compute.block_weights import NormWeights
from compute.circuits import factored, heads
from compute.config import NormConfig
from compute.errors import QuestionError

NARROW = np.eye(5)[:, :2][None]  # (1, d, v): the first two coordinates


def circuit(between: list[list[float]]) -> factored.Circuits:
    """W_V = the first two coordinates, W_O = `between` into them."""
    return factored.Circuits(NARROW, np.array(between)[None] @ NARROW.swapaxes(1, 2))


@pytest.mark.parametrize(
    ("between", "score"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], 1.0),
        ([[-1.0, 0.0], [0.0, -2.0]], -1.0),
        ([[0.0, 1.0], [1.0, 0.0]], 0.0),
        ([[3.0, 0.0], [0.0, -1.0]], 0.5),
        ([[0.0, 0.0], [0.0, 0.0]], 0.0),
    ],
    ids=["identity", "negation", "swap", "mixed", "zero"],
)
def test_copying_by_hand(between: list[list[float]], score: float) -> None:
    eigenvalues = circuit(between).eigenvalues()
    assert factored.copying(eigenvalues)[0] == pytest.approx(score)


def test_quarter_turn_has_a_pair_of_imaginary_eigenvalues() -> None:
    np.testing.assert_allclose(circuit([[0, 1], [-1, 0]]).eigenvalues()[0], [1j, -1j], atol=1e-12)


def test_eigenvalues_come_by_size_then_sign() -> None:
    np.testing.assert_allclose(circuit([[-3, 0], [0, 2]]).eigenvalues()[0], [-3, 2])
    np.testing.assert_allclose(circuit([[-2, 0], [0, 2]]).eigenvalues()[0], [2, -2])


def test_rows_for_tokens_are_those_of_the_whole_matrix() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((2, 3, 6, 2))
    circuits = factored.Circuits(left, right.swapaxes(1, 2))
    rows, columns = rng.standard_normal((4, 6)), rng.standard_normal((6, 4))
    found = circuits.between(rows, columns)
    for r in range(3):
        np.testing.assert_allclose(found[r], rows @ (left[r] @ right[r].T) @ columns, atol=1e-12)


@pytest.mark.parametrize("wide", [2, 9])
def test_factors_wider_than_the_stream_have_its_singular_values(wide: int) -> None:
    rng = np.random.default_rng(wide)
    left, right = rng.standard_normal((1, 4, wide)), rng.standard_normal((1, wide, 4))
    expected = np.linalg.svd(left[0] @ right[0], compute_uv=False)
    found = factored.Circuits(left, right).singular_values()[0]
    np.testing.assert_allclose(found, expected[: len(found)], atol=1e-12)
    assert len(found) == min(wide, 4)


def test_folded_layer_norm_reads_nothing_of_the_mean() -> None:
    rng = np.random.default_rng(1)
    gain, W, x = rng.standard_normal(6), rng.standard_normal((6, 3)), rng.standard_normal((2, 6))
    norm = NormConfig(kind="layernorm")
    folded = heads.folding(norm, NormWeights(gain=gain), True)(W)
    np.testing.assert_allclose(np.ones(6) @ folded, 0, atol=1e-12)
    centred = x - x.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(x @ folded, (centred * gain) @ W, atol=1e-12)


@pytest.mark.parametrize("placement", ["post", "output"])
def test_norm_that_stands_elsewhere_is_not_folded(placement: str) -> None:
    W = np.ones((2, 2))
    norm = NormConfig(kind="layernorm", placement=placement)  # type: ignore[arg-type]
    np.testing.assert_array_equal(heads.folding(norm, NormWeights(), True)(W), W)


@pytest.mark.parametrize("wrong", [np.inf, -np.inf, np.nan, 1e31])
def test_weight_that_no_score_can_be_computed_of_is_refused(wrong: float) -> None:
    with pytest.raises(QuestionError):
        heads.in_range(np.array([1.0, wrong]))
