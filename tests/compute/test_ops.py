"""Operations that have a short way and a long one."""

from itertools import product

import numpy as np
import pytest

from compute import ops

ROWS = np.random.default_rng(0)


def literal(x: np.ndarray, count: int) -> list[int]:
    """The largest first, of equals the first."""
    return sorted(range(len(x)), key=lambda at: (-x[at], at))[:count]


@pytest.mark.parametrize("count", [1, 2, 5, 16, 17, 30])
def test_the_largest_come_first_and_of_equals_the_first(count: int) -> None:
    x = ROWS.integers(0, 9, (2, 5, 30)).astype(np.float64)
    found = ops.largest(x, count)
    assert found.dtype == np.int64
    for at in product(range(2), range(5)):
        assert list(found[at]) == literal(x[at], count)


def test_each_expert_is_chosen_once_where_logits_overflow() -> None:
    x = np.array([[-np.inf, 3.0, -np.inf, -np.inf], [np.inf, -np.inf, np.inf, 0.0]])
    assert ops.largest(x, 3).tolist() == [[1, 0, 2], [0, 2, 3]]


def test_rows_go_through_the_experts_chosen_for_them() -> None:
    W, b = ROWS.normal(size=(7, 3, 4)), ROWS.normal(size=(7, 4))
    x, experts = ROWS.normal(size=(2, 5, 2, 3)), ROWS.integers(0, 7, (2, 5, 2))
    for bias in (b, None):
        made = ops.by_expert(x, experts, W, bias)
        for at in product(range(2), range(5), range(2)):
            expert = experts[at]
            expected = x[at] @ W[expert] + (0 if bias is None else bias[expert])
            np.testing.assert_allclose(made[at], expected, rtol=0, atol=1e-14)
