"""The second route of each identity: what it reads and how far the two routes are apart."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import hypot
from types import EllipsisType

import numpy as np

from compute.config import ModelConfig
from compute.types import Array, Bools
from compute.weights import ModelWeights

_BLOCK_ELEMENTS = 1 << 20  # float64 copies are made in blocks of 8 MiB at most


@dataclass(frozen=True, slots=True)
class Operands:
    """The arrays of a route's stages (`sized_by` last) and the weights of its block."""

    values: tuple[Array, ...]
    weights: ModelWeights
    layer: int
    fully_masked: Bools | None
    check: Callable[[], None]

    def row_blocks(self, x: Array) -> Iterator[tuple[EllipsisType, slice, slice]]:
        """Indices that cut (..., n, d) into blocks of rows; the work may be stopped between two."""
        for rows in _row_blocks(x):
            self.check()
            yield rows


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


@dataclass(frozen=True, slots=True)
class Route:
    """An identity: its name, formula, the stages it ties together, its measure.

    `sized_by` are stages read for the size of the terms alone; `absent` says why there is none.
    """

    name: str
    formula: str
    stages: tuple[str, ...]
    measure: Callable[[Operands], Measured]
    sized_by: tuple[str, ...] = ()
    absent: str | None = None


def in_block(config: ModelConfig) -> Iterator[Route]:
    """The identities of one block, as its arrangement has them."""
    post = config.norm.placement == "post"
    both = config.attention.kind != "none" and config.ffn.kind != "none"
    first = "resid_mid" if both else "resid_post"
    yield Route("pattern_softmax", "softmax(S) = A", ("attn.scores", "attn.pattern"), softmax)
    yield Route("pattern_rows", "Σ_m A_nm = 1, A >= 0", ("attn.pattern",), pattern_rows)
    yield Route("mixture", "A V = H", ("attn.pattern", "attn.v", "attn.z"), mixture)
    yield Route(
        "head_sum",
        "Σ_r H_r W_O^(r) + b_O = Δ_attn",
        ("attn.head_out", "attn_out"),
        head_sum,
        sized_by=("attn.z",),
    )
    yield _sum(
        "attn_addition", "X + Δ_attn", "resid_pre", "attn_out", "attn_sum" if post else first
    )
    yield Route(
        "ffn_product", "hidden W_out + b_out = Δ_ffn", ("ffn.hidden", "ffn_out"), ffn_product
    )
    base = "resid_mid" if both else "resid_pre"
    yield _sum("ffn_addition", "Y + Δ_ffn", base, "ffn_out", "ffn_sum" if post else "resid_post")


def _sum(name: str, left: str, base: str, update: str, total: str) -> Route:
    written = {"resid_mid": "Y", "resid_post": "Z"}.get(total, total)
    return Route(name, f"{left} = {written}", (base, update, total), addition)


def expansion(config: ModelConfig) -> Route:
    """X^(N) = X^(0) + Σ (Δ_attn + Δ_ffn); only where no norm follows an addition."""
    kinds = (("attn_out", config.attention.kind), ("ffn_out", config.ffn.kind))
    updates = [
        f"blocks.{layer}.{name}"
        for layer in range(config.n_layers)
        for name, kind in kinds
        if kind != "none"
    ]
    last = f"blocks.{config.n_layers - 1}.resid_post"
    reason = "not applicable: post-norm, every sum is normalized before it goes on"
    return Route(
        "expansion",
        "X^(0) + Σ (Δ_attn + Δ_ffn) = X^(N)",
        ("blocks.0.resid_pre", *updates, last),
        addition,
        absent=reason if config.norm.placement == "post" else None,
    )


def addition(operands: Operands) -> Measured:
    """The sum of all but the last = the last, row block by row block."""
    *terms, total = operands.values
    parts, size = [], 0.0
    for rows in operands.row_blocks(total):
        left = sum((term[rows].astype(np.float64) for term in terms), np.zeros(()))
        terms_size = sum((np.abs(term[rows]) for term in terms), np.zeros(()))
        size = max(size, float(terms_size.max()))
        parts.append(_part(left, total[rows]))
    return _joined(parts, size, len(terms))


EMBEDDING = Route(
    "embedding_sum",
    "embed + pos_embed = X^(0)",
    ("embed", "pos_embed", "blocks.0.resid_pre"),
    addition,
)


def pattern_rows(operands: Operands) -> Measured:
    """Each row sums to 1, or to 0 where every key is masked; no weight is negative."""
    (A,) = operands.values
    left = A.sum(axis=-1, dtype=np.float64)
    masked = operands.fully_masked
    right = np.ones(left.shape) if masked is None else np.where(masked, 0.0, np.ones(left.shape))
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
    S, A = operands.values
    parts, spread = [], 0.0
    for rows in operands.row_blocks(S):
        exact = S[rows].astype(np.float64)
        finite = np.isfinite(exact)
        spread = max(spread, float(np.abs(exact).max(where=finite, initial=0.0)))
        parts.append(_part(_softmax(exact), A[rows]))
    return _joined(parts, 1.0, S.shape[-1], spread)


def _softmax(S: Array) -> Array:
    top = S.max(axis=-1, keepdims=True)
    weights = np.exp(S - np.where(np.isfinite(top), top, 0.0))
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(total == 0.0, 1.0, total)


def mixture(operands: Operands) -> Measured:
    """Σ_m A_nm V_m for each head, in float64, row block by row block."""
    A, V, H = operands.values
    served = A.shape[-3] // V.shape[-3]
    parts = []
    for r in range(A.shape[-3]):
        values = V[..., r // served, :, :].astype(np.float64)
        for rows in operands.row_blocks(A[..., r, :, :]):
            left = A[..., r, :, :][rows].astype(np.float64) @ values
            parts.append(_part(left, H[..., r, :, :][rows]))
    return _joined(parts, float(np.abs(V).max()), A.shape[-1])


def head_sum(operands: Operands) -> Measured:
    """Head by head: each contribution on its own, then b_O."""
    contributions, attn_out, H = operands.values
    w = operands.weights.blocks[operands.layer].attention
    bias = 0.0 if w.b_O is None else w.b_O
    parts, row_norm = [], 0.0
    for rows in operands.row_blocks(attn_out):
        row_norm = max(row_norm, norm(H[rows], axis=(-3, -1)))
        heads = (contributions[..., r, :, :][rows] for r in range(contributions.shape[-3]))
        left = sum((one.astype(np.float64) for one in heads), np.zeros(()))
        parts.append(_part(left + bias, attn_out[rows]))
    size = row_norm * _largest_column(w.W_O.reshape(-1, w.W_O.shape[-1]))
    return _joined(parts, size + _size(w.b_O), H.shape[-3] * H.shape[-1])


def ffn_product(operands: Operands) -> Measured:
    """hidden W_out + b_out in float64, block by block."""
    hidden, ffn_out = operands.values
    w = operands.weights.blocks[operands.layer].ffn
    bias = np.zeros(ffn_out.shape[-1]) if w.b_out is None else w.b_out
    row_norm = max(norm(hidden[rows], axis=-1) for rows in operands.row_blocks(hidden))
    parts = []
    for some in _column_blocks(w.W_out):
        columns = w.W_out[:, some].astype(np.float64)
        for rows in operands.row_blocks(hidden):
            left = hidden[rows].astype(np.float64) @ columns + bias[some]
            parts.append(_part(left, ffn_out[rows][..., some]))
    size = row_norm * _largest_column(w.W_out) + _size(w.b_out)
    return _joined(parts, size, hidden.shape[-1])


def _largest_column(W: Array) -> float:
    """The largest norm of a column: (i, o) -> a number."""
    return max(norm(W[:, some], axis=0) for some in _column_blocks(W))


def _column_blocks(W: Array) -> Iterator[slice]:
    """Slices that cut (i, o) into blocks of columns of at most `_BLOCK_ELEMENTS` numbers."""
    step = max(1, _BLOCK_ELEMENTS // W.shape[0])
    return (slice(start, start + step) for start in range(0, W.shape[1], step))


def _row_blocks(x: Array) -> Iterator[tuple[EllipsisType, slice, slice]]:
    """Indices that cut (..., n, d) into blocks of rows of at most `_BLOCK_ELEMENTS` numbers."""
    rows = x.shape[-2]
    step = max(1, _BLOCK_ELEMENTS * rows // max(1, x.size))
    for start in range(0, rows, step):
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


def _part(left: Array, right: Array) -> Part:
    return Part(
        float(np.abs(left - right).max()),
        norm(left),
        norm(right),
        float(np.abs(right).max()),
    )


def _joined(parts: list[Part], scale: float, width: int, spread: float = 0.0) -> Measured:
    return Measured(
        max_abs=max(part.max_abs for part in parts),
        left_norm=hypot(*(part.left_norm for part in parts)),
        right_norm=hypot(*(part.right_norm for part in parts)),
        right_max=max(part.right_max for part in parts),
        scale=scale,
        width=width,
        spread=spread,
    )


def _measured(left: Array, right: Array, scale: float, width: int) -> Measured:
    return _joined([_part(left, right)], scale, width)


def _size(bias: Array | None) -> float:
    return 0.0 if bias is None else float(np.abs(bias).max())
