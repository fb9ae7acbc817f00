"""A mixture's experts: which are chosen, how much each counts, and rows through them."""

import numpy as np

from compute.ops.rows import linear
from compute.ops.weighing import softmax
from compute.types import Array, Ints

_FEW = 16  # experts chosen one by one; more are sorted out


def largest(x: Array, count: int) -> Ints:
    """The indices of the largest entries, the largest first, of equals the first: (..., e) ->
    (..., c)."""
    if count > _FEW or not np.isfinite(x).all():
        order = np.argsort(-x, axis=-1, kind="stable")
        return np.ascontiguousarray(order[..., :count], np.int64)
    left, found = np.array(x), np.empty((*x.shape[:-1], count), np.int64)
    for choice in range(count):
        found[..., choice] = left.argmax(axis=-1)
        np.put_along_axis(left, found[..., choice, None], -np.inf, axis=-1)
    return found


def softmax_of_chosen(router: Array, experts: Ints) -> Array:
    """The softmax over the chosen logits alone: (..., e), (..., c) -> (..., c)."""
    return softmax(np.take_along_axis(router, experts, axis=-1))


def chosen_of_softmax(router: Array, experts: Ints) -> Array:
    """The softmax over all logits, the chosen ones taken out of it: they sum to less than 1."""
    return np.take_along_axis(softmax(np.array(router)), experts, axis=-1)


def by_expert(x: Array, experts: Ints, W: Array, b: Array | None) -> Array:
    """Each row times its chosen experts' matrices: (..., c, i), (..., c), (e, i, o) -> (..., c, o).

    Rows are gathered for each expert, so that a token costs its chosen experts alone.
    """
    rows, chosen = x.reshape(-1, x.shape[-1]), experts.reshape(-1)
    made = np.empty((len(rows), W.shape[-1]), x.dtype)
    order = np.argsort(chosen, kind="stable")
    for mine in np.split(order, np.flatnonzero(np.diff(chosen[order])) + 1):
        expert = chosen[mine[0]]
        made[mine] = linear(rows[mine], W[expert], None if b is None else b[expert])
    return made.reshape(*x.shape[:-1], W.shape[-1])


def for_each_choice(x: Array, experts: Ints) -> Array:
    """Each row once for each expert chosen for it: (..., n, d), (..., n, c) -> (..., n, c, d)."""
    return np.broadcast_to(x[..., None, :], (*experts.shape, x.shape[-1]))


def weighted_sum(weights: Array, x: Array) -> Array:
    """Σ_c weights_c x_c: (..., n, c), (..., n, c, d) -> (..., n, d)."""
    return np.asarray(np.matmul(weights[..., None, :], x)[..., 0, :])
