"""Blocks of query rows: what they reach, and that attention by blocks is attention."""

import numpy as np
import numpy.typing as npt
import pytest

from compute import driver, ops, reach
from compute.reach import EVERYTHING, ROWS, reach_of, yielded

Array = npt.NDArray[np.floating]
Bools = npt.NDArray[np.bool_]
SIZES = [(1, 1), (7, 7), (ROWS, ROWS), (ROWS + 1, ROWS + 1), (300, 300), (150, 407)]
KINDS = ["none", "causal", "window", "band", "keys", "padding", "random", "rows", "all"]
DTYPES = pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 5e-5)])


def pairs(kind: str, n: int, m: int, rng: np.random.Generator) -> Bools | None:
    """Forbidden pairs (n, m), or (b, 1, n, m) of a batch of 2."""
    query, key = np.arange(m - n, m)[:, None], np.arange(m)
    made = {
        "none": None,
        "causal": key > query,
        "window": (key > query) | (query - key >= 37),
        "band": np.abs(query - key) >= 11,
        "keys": (key > query) | (rng.random(m) < 0.3),
        "padding": (key > query) | (key < np.array([0, 60])[:, None, None, None]),
        "random": rng.random((n, m)) < 0.9,
        "rows": (key > query) | (rng.random((n, 1)) < 0.3),
        "all": np.ones((n, m), bool),
    }
    return made[kind]


def drawn(
    n: int, m: int, heads: tuple[int, int], dtype: type, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Queries, keys and values of a batch of 2."""
    h, g = heads
    shapes = ((2, h, n, 8), (2, g, m, 8), (2, g, m, 5))
    Q, K, V = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    return Q, K, V


def plain(Q: Array, K: Array, V: Array, forbidden: Bools | None) -> tuple[Array, Array, Array]:
    """The three in float64 and whole: softmax(mask(Q K^T / 3)) V."""
    Q, K, V = (x.astype(np.float64) for x in (Q, K, V))
    served = Q.shape[1] // K.shape[1]
    S = Q @ np.repeat(K, served, axis=1).swapaxes(-1, -2) / 3.0
    if forbidden is not None:
        S = np.where(forbidden, -np.inf, S)
    top = np.where(np.isfinite(S), S, -np.inf).max(axis=-1, keepdims=True)
    raised = np.exp(S - np.where(np.isfinite(top), top, 0.0))
    total = raised.sum(axis=-1, keepdims=True)
    A = np.divide(raised, total, out=np.zeros_like(raised), where=total > 0)
    return S, A, A @ np.repeat(V, served, axis=1)


@DTYPES
@pytest.mark.parametrize("heads", [(2, 2), (6, 2), (3, 1)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_attention_by_blocks_is_the_plain_form(
    n: int, m: int, kind: str, heads: tuple[int, int], dtype: type, tolerance: float
) -> None:
    rng = np.random.default_rng(n + m)
    forbidden = pairs(kind, n, m, rng)
    Q, K, V = drawn(n, m, heads, dtype, rng)
    blocks = reach_of(forbidden)
    S = ops.scores(Q, K, 1 / 3.0, None, None, blocks)
    S.flags.writeable = False
    A = ops.softmax(S, blocks)
    H = ops.mix(A, V, blocks)
    for made, expected in zip((S, A, H), plain(Q, K, V, forbidden), strict=True):
        assert made.dtype == dtype
        same = made == expected  # -inf, and the exact zeros
        np.testing.assert_allclose(made[~same], expected[~same], rtol=0, atol=tolerance)
    if forbidden is not None:
        hidden = np.broadcast_to(forbidden, A.shape)
        assert (S[hidden] == -np.inf).all()
        assert (A[hidden] == 0.0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_softmax_in_place_has_the_same_bits_as_beside_scores_that_are_kept(kind: str) -> None:
    rng = np.random.default_rng(2)
    blocks = reach_of(pairs(kind, 300, 300, rng))
    Q, K, _ = drawn(300, 300, (2, 2), np.float32, rng)
    kept, unkept = (ops.scores(Q, K, 1.0, None, None, blocks) for _ in range(2))
    kept.flags.writeable = False
    scores = kept.tobytes()
    beside, inside = ops.softmax(kept, blocks), ops.softmax(unkept, blocks)
    assert inside is unkept
    assert beside is not kept
    assert kept.tobytes() == scores
    assert beside.tobytes() == inside.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_cap_and_bias_come_before_the_mask(kind: str) -> None:
    rng = np.random.default_rng(3)
    forbidden = pairs(kind, 150, 407, rng)
    Q, K, _ = drawn(150, 407, (4, 2), np.float64, rng)
    bias = rng.standard_normal((4, 150, 407))
    S = ops.scores(Q, K, 0.7, 2.5, bias, reach_of(forbidden))
    whole = 2.5 * np.tanh(0.7 * Q @ np.repeat(K, 2, axis=1).swapaxes(-1, -2) / 2.5) + bias
    expected = whole if forbidden is None else np.where(forbidden, -np.inf, whole)
    seen = np.isfinite(expected)
    assert (np.isfinite(S) == seen).all()
    np.testing.assert_allclose(S[seen], expected[seen], rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_sinks_by_blocks_are_one_more_logit_of_each_row(kind: str) -> None:
    rng = np.random.default_rng(4)
    forbidden = pairs(kind, 300, 300, rng)
    Q, K, V = drawn(300, 300, (2, 2), np.float64, rng)
    blocks, sinks = reach_of(forbidden), np.array([0.3, -1.2])
    A, share = ops.softmax_with_sinks(ops.scores(Q, K, 1 / 3.0, None, None, blocks), sinks, blocks)
    S, _, _ = plain(Q, K, V, forbidden)
    logits = np.concatenate([S, np.broadcast_to(sinks[:, None, None], (2, 2, 300, 1))], axis=-1)
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    expected = raised / raised.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(A, expected[..., :-1], rtol=0, atol=1e-14)
    np.testing.assert_allclose(share, expected[..., -1], rtol=0, atol=1e-14)


# What the blocks are.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_the_blocks_hold_every_row_once_and_every_allowed_pair(n: int, m: int, kind: str) -> None:
    forbidden = pairs(kind, n, m, np.random.default_rng(n))
    if forbidden is None:
        assert reach_of(None) is EVERYTHING
        return
    allowed = ~forbidden
    left = np.ones(n, int)
    for block in reach_of(forbidden):
        left[block.rows] -= 1
        rows = allowed[..., block.rows, :]
        assert rows[..., block.keys].sum() == rows.sum()
        marked = forbidden[..., block.rows, block.masked]
        inside = forbidden[..., block.rows, block.keys].sum()
        assert inside == (0 if block.forbidden is None else marked.sum())
    assert (left == 0).all()


def test_a_causal_triangle_is_half_skipped_and_masked_on_its_diagonal_alone() -> None:
    n = 8 * ROWS
    blocks = reach_of(np.triu(np.ones((n, n), bool), 1))
    assert [block.keys for block in blocks] == [slice(0, (i + 1) * ROWS) for i in range(8)]
    assert all(block.forbidden.shape == (ROWS, ROWS - 1) for block in blocks)


def test_what_is_out_of_reach_is_never_read() -> None:
    n = 3 * ROWS
    forbidden = np.triu(np.ones((n, n), bool), 1)
    rng = np.random.default_rng(5)
    Q, K, V = drawn(n, n, (2, 2), np.float64, rng)
    blocks = reach_of(forbidden)
    expected = ops.mix(ops.softmax(ops.scores(Q, K, 1.0, None, None, blocks), blocks), V, blocks)
    K[..., ROWS:, :], V[..., ROWS:, :] = np.nan, np.nan
    made = ops.mix(ops.softmax(ops.scores(Q, K, 1.0, None, None, blocks), blocks), V, blocks)
    assert made[..., :ROWS, :].tobytes() == expected[..., :ROWS, :].tobytes()
    assert np.isnan(made[..., ROWS:, :]).all()


# A changed value.


def sent_back(made: Array, change: object, nothing: float, blocks: reach.Reach) -> reach.Reach:
    """The reach that an equation goes on with where its stage is changed."""

    def equation() -> object:
        _, found = yield from yielded("stage", made, blocks, nothing)
        told.append(found)
        yield "end", made

    told: list[reach.Reach] = []
    dict(driver.stream(equation(), {"end"}, {"stage": change} if change else {}))
    return told[0]


def scores_of(n: int) -> tuple[Array, reach.Reach]:
    forbidden = np.triu(np.ones((n, n), bool), 1)
    return np.where(forbidden, -np.inf, np.zeros((2, n, n))), reach_of(forbidden)


def test_a_value_that_nobody_changes_or_that_keeps_what_is_out_of_reach_keeps_its_blocks() -> None:
    S, blocks = scores_of(3 * ROWS)
    assert sent_back(S, None, -np.inf, blocks) is blocks
    assert sent_back(S, np.array, -np.inf, blocks) == blocks
    assert sent_back(S, lambda x: x + np.tri(3 * ROWS), -np.inf, blocks) == blocks


@pytest.mark.parametrize("value", [1.0, np.nan, np.inf])
def test_only_the_block_that_holds_something_out_of_its_reach_is_read_whole(value: float) -> None:
    S, blocks = scores_of(3 * ROWS)

    def change(x: Array) -> Array:
        changed = np.array(x)
        changed[1, ROWS + 5, 3 * ROWS - 1] = value
        return changed

    found = sent_back(S, change, -np.inf, blocks)
    assert (found[0], found[2]) == (blocks[0], blocks[2])
    assert found[1].keys is reach.ALL
    assert found[1].rows == blocks[1].rows
