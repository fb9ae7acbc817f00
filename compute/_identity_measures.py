"""How far the two routes of an identity are apart: the second route, in float64."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import hypot
from types import EllipsisType

import numpy as np

from compute.block_weights import AttentionWeights, BlockWeights, CrossWeights, FfnWeights
from compute.types import Array, Bools

Rows = tuple[EllipsisType, slice, slice]
"""An index of some rows of (..., n, d)."""

_BLOCK_ELEMENTS = 1 << 20  # float64 copies are made in blocks of 8 MiB at most


@dataclass(frozen=True, slots=True)
class Operands:
    """The arrays of a route's stages (`sized_by` last) and the weights of its block.

    fully_masked: the queries without a key of the first stage, where that is a pattern.
    """

    values: tuple[Array, ...]
    block: BlockWeights | None
    fully_masked: Bools | None
    check: Callable[[], None]

    def row_blocks(self, x: Array) -> Iterator[Rows]:
        """Indices that cut (..., n, d) into blocks of rows; the work may be stopped between two."""
        return row_blocks(x, self.check)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How far left and right are apart, and how large their terms are."""

    max_abs: float
    left_norm: float
    right_norm: float
    right_max: float
    scale: float
    width: int
    spread: float = 0.0


def pattern_rows(operands: Operands) -> Measured:
    """Each row sums to 1, or to 0 where every key is masked; no weight is negative."""
    (A,) = operands.values
    left = A.sum(axis=-1, dtype=np.float64)
    masked = operands.fully_masked
    right = np.ones(left.shape) if masked is None else np.where(masked, 0.0, np.ones(left.shape))
    return _rows_measured(A, left, right)


def rows_with_sinks(operands: Operands) -> Measured:
    """Each row and what the sink takes of it sum to 1; no weight is negative."""
    A, sink = operands.values
    left = A.sum(axis=-1, dtype=np.float64) + sink
    return _rows_measured(A, left, np.ones(left.shape))


def _rows_measured(A: Array, left: Array, right: Array) -> Measured:
    plain = _measured(left, right, 1.0, A.shape[-1])
    worst = max(plain.max_abs, float(-A.min()))
    return Measured(
        max_abs=worst,
        left_norm=plain.left_norm,
        right_norm=plain.right_norm,
        right_max=plain.right_max,
        scale=1.0,
        width=A.shape[-1],
    )


def softmax(operands: Operands) -> Measured:
    """exp(S - max S) / Σ exp(S - max S), again in float64, row block by row block."""
    A, S = operands.values
    return _softmax_measured(operands, S, A, np.full((), -np.inf))


def softmax_with_sinks(operands: Operands) -> Measured:
    """exp(S - top) / (Σ exp(S - top) + exp(sink - top)), again in float64."""
    A, S = operands.values
    sinks = _attention(operands).sinks.astype(np.float64)[:, None, None]
    return _softmax_measured(operands, S, A, sinks)


def _softmax_measured(operands: Operands, S: Array, A: Array, sinks: Array) -> Measured:
    parts, spread = [], float(np.abs(sinks).max(where=np.isfinite(sinks), initial=0.0))
    for rows in operands.row_blocks(S):
        exact = S[rows].astype(np.float64)
        finite = np.isfinite(exact)
        spread = max(spread, float(np.abs(exact).max(where=finite, initial=0.0)))
        parts.append(part(_softmax(exact, sinks), A[rows]))
    return joined(parts, 1.0, S.shape[-1], spread)


def _softmax(S: Array, sinks: Array) -> Array:
    top = np.maximum(S.max(axis=-1, keepdims=True), sinks)
    lowered = np.where(np.isfinite(top), top, 0.0)
    weights = np.exp(S - lowered)
    total = weights.sum(axis=-1, keepdims=True) + np.exp(sinks - lowered)
    return weights / np.where(total == 0.0, 1.0, total)


def multiple(multiplier: float, operands: Operands) -> Measured:
    """multiplier, as the dtype holds it, times the first = the second."""
    source, update = operands.values
    left = float(update.dtype.type(multiplier)) * source.astype(np.float64)
    return _measured(left, update, float(np.abs(left).max()), 1)


def mixture(operands: Operands) -> Measured:
    """Σ_m A_nm V_m for each head, in float64, row block by row block."""
    A, V, H = operands.values
    served = A.shape[-3] // V.shape[-3]
    parts = []
    for r in range(A.shape[-3]):
        values = V[..., r // served, :, :].astype(np.float64)
        for rows in operands.row_blocks(A[..., r, :, :]):
            left = A[..., r, :, :][rows].astype(np.float64) @ values
            parts.append(part(left, H[..., r, :, :][rows]))
    return joined(parts, float(np.abs(V).max()), A.shape[-1])


def head_sum(operands: Operands) -> Measured:
    """Head by head: each contribution on its own, then b_O."""
    return _heads_measured(operands, _attention(operands))


def cross_head_sum(operands: Operands) -> Measured:
    """The same of cross-attention."""
    assert operands.block is not None  # noqa: S101 - an identity of a block
    return _heads_measured(operands, operands.block.cross)


def _attention(operands: Operands) -> AttentionWeights:
    assert operands.block is not None  # noqa: S101 - an identity of a block
    return operands.block.attention


def _ffn(operands: Operands) -> FfnWeights:
    assert operands.block is not None  # noqa: S101 - an identity of a block
    return operands.block.ffn


def _heads_measured(operands: Operands, w: AttentionWeights | CrossWeights) -> Measured:
    contributions, attn_out, H = operands.values
    bias = 0.0 if w.b_O is None else w.b_O
    parts, row_norm = [], 0.0
    for rows in operands.row_blocks(attn_out):
        row_norm = max(row_norm, norm(H[rows], axis=(-3, -1)))
        heads = (contributions[..., r, :, :][rows] for r in range(contributions.shape[-3]))
        left = sum((one.astype(np.float64) for one in heads), np.zeros(()))
        parts.append(part(left + bias, attn_out[rows]))
    size = row_norm * _largest_column(w.W_O.reshape(-1, w.W_O.shape[-1]))
    return joined(parts, size + _size(w.b_O), H.shape[-3] * H.shape[-1])


def ffn_product(operands: Operands) -> Measured:
    """hidden W_out + b_out in float64, block by block."""
    hidden, ffn_out = operands.values
    w = _ffn(operands)
    bias = np.zeros(ffn_out.shape[-1]) if w.b_out is None else w.b_out
    row_norm = max(norm(hidden[rows], axis=-1) for rows in operands.row_blocks(hidden))
    parts = []
    for some in _column_blocks(w.W_out):
        columns = w.W_out[:, some].astype(np.float64)
        for rows in operands.row_blocks(hidden):
            left = hidden[rows].astype(np.float64) @ columns + bias[some]
            parts.append(part(left, ffn_out[rows][..., some]))
    size = row_norm * _largest_column(w.W_out) + _size(w.b_out)
    return joined(parts, size, hidden.shape[-1])


def expert_product(operands: Operands) -> Measured:
    """hidden W_out + b_out of each chosen expert in float64, expert by expert."""
    hidden, experts, expert_out = operands.values
    w = _ffn(operands)
    parts, size = [], 0.0
    for expert in np.unique(experts):
        operands.check()
        mine = experts == expert
        rows, W = hidden[mine].astype(np.float64), w.W_out[int(expert)]
        b = None if w.b_out is None else w.b_out[int(expert)]
        left = rows @ W.astype(np.float64) + (0.0 if b is None else b)
        parts.append(part(left, expert_out[mine]))
        size = max(size, norm(rows, axis=-1) * _largest_column(W) + _size(b))
    return joined(parts, size, hidden.shape[-1])


def expert_sum(operands: Operands) -> Measured:
    """Each chosen expert's output times its weight, one by one, then the shared expert's."""
    weights, expert_out, *shared, total = operands.values
    choices = range(weights.shape[-1])
    terms = [weights[..., c, None].astype(np.float64) * expert_out[..., c, :] for c in choices] + [
        each.astype(np.float64) for each in shared
    ]
    size = float(sum((np.abs(term) for term in terms), np.zeros(())).max())
    return _measured(sum(terms, np.zeros(())), total, size, len(terms))


def _largest_column(W: Array) -> float:
    """The largest norm of a column: (i, o) -> a number."""
    return max(norm(W[:, some], axis=0) for some in _column_blocks(W))


def _column_blocks(W: Array) -> Iterator[slice]:
    """Slices that cut (i, o) into blocks of columns of at most `_BLOCK_ELEMENTS` numbers."""
    step = max(1, _BLOCK_ELEMENTS // W.shape[0])
    return (slice(start, start + step) for start in range(0, W.shape[1], step))


def row_blocks(x: Array, check: Callable[[], None]) -> Iterator[Rows]:
    """Indices that cut (..., n, d) into blocks of rows of at most `_BLOCK_ELEMENTS` numbers;
    `check` is called before each."""
    rows = x.shape[-2]
    step = max(1, _BLOCK_ELEMENTS * rows // max(1, x.size))
    for start in range(0, rows, step):
        check()
        yield ..., slice(start, start + step), slice(None)


@dataclass(frozen=True, slots=True)
class Part:
    """Largest |left - right|, norms and largest |right| of a part of the entries."""

    max_abs: float
    left_norm: float
    right_norm: float
    right_max: float


def norm(x: Array, axis: int | tuple[int, ...] | None = None) -> float:
    """The largest norm along the axes: scaled first, for squares overflow before norms do."""
    largest = float(np.abs(x).max())
    if not largest:
        return 0.0
    return largest * float(np.sqrt(np.square(x / np.float64(largest)).sum(axis=axis).max()))


def part(left: Array, right: Array) -> Part:
    """How far some entries are apart."""
    return Part(
        float(np.abs(left - right).max()),
        norm(left),
        norm(right),
        float(np.abs(right).max()),
    )


def joined(parts: list[Part], scale: float, width: int, spread: float = 0.0) -> Measured:
    """The same of all entries, of their parts."""
    return Measured(
        max_abs=max(each.max_abs for each in parts),
        left_norm=hypot(*(each.left_norm for each in parts)),
        right_norm=hypot(*(each.right_norm for each in parts)),
        right_max=max(each.right_max for each in parts),
        scale=scale,
        width=width,
        spread=spread,
    )


def _measured(left: Array, right: Array, scale: float, width: int) -> Measured:
    return joined([part(left, right)], scale, width)


def _size(bias: Array | None) -> float:
    return 0.0 if bias is None else float(np.abs(bias).max())
