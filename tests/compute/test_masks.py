"""Forbidden pairs and queries without a key, in the shapes that are documented."""

import numpy as np
import pytest

from compute import masks
from compute.config import attention_config
from compute.types import Bools

T, F = True, False
CAUSAL, FULL = attention_config(4, 2), attention_config(4, 2, mask="full")
KEYS = np.array([F, T, T])
PAIRS = np.array([[T, T, T], [F, F, F], [T, F, T]])


def forbidden(mask: str, keys: Bools | None = None, pairs: Bools | None = None) -> Bools | None:
    return masks.forbidden_pairs(CAUSAL if mask == "causal" else FULL, 3, keys, pairs)


def test_without_any_rule_nothing_is_forbidden() -> None:
    assert forbidden("full") is None
    assert masks.fully_masked(None) is None


def test_a_window_as_wide_as_the_input_forbids_nothing() -> None:
    assert (
        masks.forbidden_pairs(attention_config(4, 2, mask="full", window=3), 3, None, None) is None
    )


@pytest.mark.parametrize("mask", ["causal", "full"])
@pytest.mark.parametrize("pairs", [None, PAIRS])
@pytest.mark.parametrize("keys", [None, KEYS, np.array([F, F, F])])
def test_an_input_without_a_batch_has_one_flag_for_each_query(
    mask: str, keys: Bools | None, pairs: Bools | None
) -> None:
    found = forbidden(mask, keys, pairs)
    if found is None:
        return
    allowed = np.tri(3, dtype=bool) if mask == "causal" else np.ones((3, 3), bool)
    allowed = allowed & (T if keys is None else keys) & (T if pairs is None else pairs)
    assert np.broadcast_to(found, (1, 2, 3, 3))[0, 0].tolist() == (~allowed).tolist()
    flags = masks.fully_masked(found)
    assert flags is not None
    assert flags.tolist() == (~allowed.any(axis=1)).tolist()


@pytest.mark.parametrize("mask", ["causal", "full"])
@pytest.mark.parametrize("pairs", [None, PAIRS, np.stack([PAIRS, ~PAIRS])])
@pytest.mark.parametrize("keys", [None, KEYS, np.stack([KEYS, ~KEYS])])
def test_a_batch_has_one_flag_for_each_query_of_each_row(
    mask: str, keys: Bools | None, pairs: Bools | None
) -> None:
    if getattr(keys, "ndim", 0) < 2 and getattr(pairs, "ndim", 0) < 3:
        return  # no mask of its own for each row
    own_keys = np.ones((2, 3), bool) if keys is None else np.broadcast_to(keys, (2, 3))
    own_pairs = np.ones((2, 3, 3), bool) if pairs is None else np.broadcast_to(pairs, (2, 3, 3))
    order = np.tri(3, dtype=bool) if mask == "causal" else np.ones((3, 3), bool)
    allowed = order & own_keys[:, None] & own_pairs
    found = forbidden(mask, keys, pairs)
    assert found is not None
    assert np.broadcast_to(found, (2, 5, 3, 3))[:, 4].tolist() == (~allowed).tolist()
    flags = masks.fully_masked(found)
    assert flags is not None
    assert flags.tolist() == (~allowed.any(axis=2))[:, None].tolist()
