"""Composition scores are TransformerLens', with the norms folded in and without."""

from typing import Any

import numpy as np
import pytest

from lens.questions import CASES, Case
from lens.references import ALLOWED, TOLD, Array, apart, post, value

pytestmark = [
    pytest.mark.parametrize("case", CASES.values(), ids=list(CASES)),
    pytest.mark.parametrize(("weights", "fold_norm"), [("plain", False), ("folded", True)]),
    pytest.mark.parametrize("kind", "QKV"),
]


def scores(case: Case, kind: str, *, fold_norm: bool) -> Array:
    """(writer, reader), nan where the reader is in no later block."""
    answer: Any = post("subspaces", case, ask=["composition"], fold_norm=fold_norm)
    return np.array(answer["composition"][kind.lower()]["score"], np.float64)


def theirs_of(case: Case, weights: str, kind: str) -> Array:
    """(layer, head, layer, head) -> the same grid."""
    theirs = value(case, f"composition.{weights}.{kind}")
    layers, heads, *_ = theirs.shape
    return theirs.reshape(layers * heads, layers * heads)


def test_scores_are_theirs(case: Case, weights: str, fold_norm: bool, kind: str) -> None:
    ours, theirs = scores(case, kind, fold_norm=fold_norm), theirs_of(case, weights, kind)
    assert np.array_equal(np.isnan(ours), theirs == 0)
    assert apart(np.nan_to_num(ours), theirs) < ALLOWED


def test_no_other_scores_pass_for_them(
    case: Case, weights: str, fold_norm: bool, kind: str
) -> None:
    theirs = theirs_of(case, weights, kind)
    otherwise = scores(case, kind, fold_norm=not fold_norm)
    assert apart(np.nan_to_num(otherwise), theirs) > TOLD
    for other in "QKV".replace(kind, ""):
        another = scores(case, other, fold_norm=fold_norm)
        assert apart(np.nan_to_num(another), theirs) > TOLD
    swapped = np.nan_to_num(scores(case, kind, fold_norm=fold_norm))[::-1, ::-1].T
    assert apart(swapped, theirs) > TOLD
