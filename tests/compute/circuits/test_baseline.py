"""Chance: the small triangles that are drawn score as whole random matrices do."""

from collections.abc import Callable
from math import sqrt

import numpy as np
import pytest

from compute.circuits import baseline, subspace
from oracle.circuits import product_score

DRAWS = 3000
Rng = np.random.Generator


def whole_composition(rng: Rng, d: int, v: int, k: int) -> float:
    writes = rng.standard_normal((d, v)) @ rng.standard_normal((v, d))
    return product_score(writes, rng.standard_normal((d, k)) @ rng.standard_normal((k, d)))


def whole_product(rng: Rng, d: int, v: int, k: int) -> float:
    return product_score(rng.standard_normal((v, d)), rng.standard_normal((d, k)))


@pytest.mark.parametrize(
    ("drawn", "whole"),
    [
        (baseline.of_composition, whole_composition),
        (baseline.of_product, whole_product),
    ],
)
@pytest.mark.parametrize("shape", [(7, 2, 3), (5, 3, 3), (4, 1, 9), (3, 5, 2), (6, 6, 1)], ids=str)
def test_drawn_scores_have_the_mean_and_spread_of_whole_ones(
    monkeypatch: pytest.MonkeyPatch,
    drawn: Callable[..., baseline.Baseline],
    whole: Callable[..., float],
    shape: tuple[int, int, int],
) -> None:
    monkeypatch.setattr(baseline, "SAMPLES", DRAWS)
    found = drawn.__wrapped__(*shape)  # type: ignore[attr-defined]
    rng = np.random.default_rng(5)
    scores = np.array([whole(rng, *shape) for _ in range(DRAWS)])
    assert found.mean == pytest.approx(scores.mean(), abs=6 * scores.std() / sqrt(DRAWS))
    assert found.std == pytest.approx(scores.std(), rel=0.12)
    rms = sqrt(found.mean**2 + found.std**2)
    assert rms == pytest.approx(1 / sqrt(shape[0]), abs=6 * scores.std() / sqrt(DRAWS))


@pytest.mark.parametrize("shape", [(9, 3), (3, 5), (4, 4)], ids=str)
def test_drawn_heads_are_as_even_and_copy_as_much_as_whole_ones(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int]
) -> None:
    monkeypatch.setattr(baseline, "SAMPLES", DRAWS)
    (d, v), rng = shape, np.random.default_rng(6)
    found = baseline.of_head.__wrapped__(d, v)
    outputs = rng.standard_normal((DRAWS, v, d))
    values = rng.standard_normal((DRAWS, d, v))
    singular = np.linalg.svd(outputs, compute_uv=False)
    eigen = np.linalg.eigvals(outputs @ values)
    expected = {
        "effective_rank": subspace.effective_rank(singular),
        "participation_ratio": subspace.participation_ratio(singular),
        "copying": eigen.sum(axis=-1).real / np.abs(eigen).sum(axis=-1),
    }
    assert set(found) == set(expected)
    for name, scores in expected.items():
        assert found[name].mean == pytest.approx(scores.mean(), abs=6 * scores.std() / sqrt(DRAWS))
        assert found[name].std == pytest.approx(scores.std(), rel=0.12)


def test_drawn_heads_copy_tokens_as_much_as_whole_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline, "SAMPLES", DRAWS)
    rng, (d, v, V) = np.random.default_rng(7), (4, 2, 6)
    found = baseline.of_token_copying.__wrapped__(d, v, V)
    shapes = ((V, d), (d, v), (v, d), (d, V))
    E, W, O, U = (rng.standard_normal((DRAWS, *shape)) for shape in shapes)  # noqa: E741
    eigen = np.linalg.eigvals(E @ W @ O @ U)
    scores = eigen.sum(axis=-1).real / np.abs(eigen).sum(axis=-1)
    assert found.mean == pytest.approx(scores.mean(), abs=6 * scores.std() / sqrt(DRAWS))
    assert found.std == pytest.approx(scores.std(), rel=0.12)


def test_same_shapes_have_the_same_baseline_every_time() -> None:
    first = baseline.of_composition(64, 16, 16)
    baseline.of_composition.cache_clear()
    assert baseline.of_composition(64, 16, 16) == first
