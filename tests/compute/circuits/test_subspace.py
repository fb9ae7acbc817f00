"""Write subspaces by hand: planes that coincide, meet in a line, or are orthogonal."""

from math import log, sqrt

import numpy as np
import pytest

from compute.circuits import angles, subspace, writing
from compute.circuits.heads import HeadId
from compute.circuits.reading import met, shared

EXACT = 1e-12


def plane(*rows: list[float]) -> subspace.Spans:
    return subspace.spans_of(np.array([rows], np.float64))


def overlap_of(a: subspace.Spans, b: subspace.Spans) -> float:
    return float(shared(met(a, b).squares, a, b)[0, 0])


def angles_of(a: subspace.Spans, b: subspace.Spans) -> np.ndarray:
    return angles.principal_angles(a.basis(0), b.basis(0))


FLOOR = plane([1, 0, 0, 0], [0, 1, 0, 0])


def test_two_heads_that_write_one_plane_overlap_fully() -> None:
    same = plane([3, 4, 0, 0], [-1, 2, 0, 0])
    assert overlap_of(FLOOR, same) == pytest.approx(1.0, abs=EXACT)
    np.testing.assert_allclose(angles_of(FLOOR, same), [0, 0], atol=1e-6)


def test_two_heads_that_write_orthogonal_planes_do_not_overlap() -> None:
    other = plane([0, 0, 2, 1], [0, 0, 1, 0])
    assert overlap_of(FLOOR, other) == pytest.approx(0.0, abs=EXACT)
    np.testing.assert_allclose(angles_of(FLOOR, other), [90, 90], atol=1e-6)


def test_planes_that_meet_in_a_line_overlap_by_half() -> None:
    wall = plane([1, 0, 0, 0], [0, 0, 1, 0])
    assert overlap_of(FLOOR, wall) == pytest.approx(0.5, abs=EXACT)
    np.testing.assert_allclose(angles_of(FLOOR, wall), [0, 90], atol=1e-6)


@pytest.mark.parametrize("degrees", [1e-7, 1e-3, 1, 30, 44.9, 45.1, 60, 89.999, 90])
def test_angle_between_lines_is_exact_near_0_and_near_90(degrees: float) -> None:
    at = np.radians(degrees)
    line, turned = plane([2, 0, 0]), plane([np.cos(at), np.sin(at), 0])
    found = angles_of(line, turned)
    np.testing.assert_allclose(found, [degrees], rtol=1e-9, atol=1e-13)
    assert overlap_of(line, turned) == pytest.approx(np.cos(at) ** 2, abs=EXACT)


def test_line_in_a_plane_overlaps_fully_whichever_comes_first() -> None:
    line = plane([1, 1, 0, 0])
    assert overlap_of(FLOOR, line) == overlap_of(line, FLOOR) == pytest.approx(1.0)
    np.testing.assert_allclose(angles_of(line, FLOOR), [0], atol=1e-6)


def test_dependent_rows_do_not_count_to_the_rank() -> None:
    spans = plane([1, 2, 3, 4], [2, 4, 6, 8], [0, 0, 0, 1])
    assert spans.ranks == (2,)
    assert spans.basis(0).shape == (2, 4)


def test_rounding_of_float32_does_not_count_to_the_rank() -> None:
    rng = np.random.default_rng(0)
    product = (rng.standard_normal((8, 3)) @ rng.standard_normal((3, 20))).astype(np.float32)
    assert subspace.spans_of(product[None].astype(np.float64)).ranks == (3,)


def test_zero_matrix_writes_nowhere() -> None:
    nothing = plane([0, 0, 0, 0], [0, 0, 0, 0])
    assert nothing.ranks == (0,)
    assert nothing.basis(0).shape == (0, 4)
    assert overlap_of(FLOOR, nothing) == 0.0
    assert angles_of(FLOOR, nothing).shape == (0,)
    assert subspace.effective_rank(nothing.singular_values) == 0
    assert subspace.participation_ratio(nothing.singular_values) == 0


@pytest.mark.parametrize("count", [1, 2, 5])
def test_equal_singular_values_have_their_number_as_effective_rank(count: int) -> None:
    values = np.array([3.0] * count + [0.0] * 2)
    assert subspace.effective_rank(values) == pytest.approx(count)
    assert subspace.participation_ratio(values) == pytest.approx(count)


def test_unequal_singular_values_by_hand() -> None:
    values = np.array([3.0, 1.0])  # shares 3/4 and 1/4; energies 9/10 and 1/10
    entropy = -(0.75 * log(0.75) + 0.25 * log(0.25))
    assert subspace.effective_rank(values) == pytest.approx(np.exp(entropy))
    assert subspace.participation_ratio(values) == pytest.approx(100 / 82)


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30])
def test_measures_of_evenness_do_not_depend_on_the_scale(scale: float) -> None:
    values = np.array([5.0, 2.0, 0.5])
    for measure in (subspace.effective_rank, subspace.participation_ratio):
        assert measure(values * scale) == pytest.approx(float(measure(values)))


def test_each_row_of_a_basis_has_a_positive_largest_entry() -> None:
    basis = plane([-5, 0, 1], [0, -2, 0]).basis(0)
    assert basis[0, 0] > 0
    assert basis[1, 1] > 0


def test_rotating_the_stream_changes_no_overlap_and_no_angle() -> None:
    rng = np.random.default_rng(1)
    M, N = rng.standard_normal((3, 9)), rng.standard_normal((4, 9))
    turn, _ = np.linalg.qr(rng.standard_normal((9, 9)))
    before = subspace.spans_of(M[None]), subspace.spans_of(N[None])
    after = subspace.spans_of((M @ turn)[None]), subspace.spans_of((N @ turn)[None])
    assert overlap_of(*after) == pytest.approx(overlap_of(*before), abs=EXACT)
    np.testing.assert_allclose(angles_of(*after), angles_of(*before), atol=1e-9)


def test_expected_overlap_is_what_random_subspaces_have() -> None:
    rng, d, p, q = np.random.default_rng(2), 7, 2, 3
    mean, spread = (float(x) for x in angles.expected_overlap(np.float64(p), np.float64(q), d))
    drawn = [
        overlap_of(
            subspace.spans_of(rng.standard_normal((1, p, d))),
            subspace.spans_of(rng.standard_normal((1, q, d))),
        )
        for _ in range(4000)
    ]
    assert mean == pytest.approx(q / d)
    assert np.mean(drawn) == pytest.approx(mean, abs=5 * spread / sqrt(4000))
    assert np.std(drawn) == pytest.approx(spread, rel=0.05)  # 1 / sqrt(2 · 4000) is 0.011


def test_expected_overlap_of_the_whole_space_and_of_nothing() -> None:
    whole = angles.expected_overlap(np.float64(3), np.float64(5), 5)
    assert [float(x) for x in whole] == [1.0, 0.0]
    assert [float(x) for x in angles.expected_overlap(np.float64(0), np.float64(2), 5)] == [0, 0]
    assert [float(x) for x in angles.expected_overlap(np.float64(1), np.float64(1), 1)] == [1, 0]


def test_angles_of_all_pairs_are_listed_once() -> None:
    rng = np.random.default_rng(3)
    heads = [HeadId(1, 0), HeadId(0, 2), HeadId(0, 1)]
    spans = [subspace.spans_of(rng.standard_normal((n, 2, 6))) for n in (2, 1)]
    found = writing.pairwise_angles(heads, spans, lambda: None)
    assert [(i, j) for i, j, _ in found] == [(0, 1), (0, 2), (1, 2)]
    expected = angles.principal_angles(spans[1].basis(0), spans[0].basis(0))
    np.testing.assert_array_equal(found[0][2], expected)
