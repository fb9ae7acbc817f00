"""What later matrices read of what a head writes: shared directions, and weighted by strength.

A head writes into the rows of W_O (v, d). A product x N reads the column space of N (d, k): W_Q,
W_K, W_V of a later head.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from compute.circuits import angles
from compute.circuits.heads import Float64, HeadId, Heads, by_block, gathered
from compute.circuits.subspace import Spans, spans_of
from compute.config import ModelConfig
from compute.weights import ModelWeights


@dataclass(frozen=True, slots=True, eq=False)
class Met:
    """For each pair of a and c: ‖A_i B_jᵀ‖² of the orthonormal bases, and
    weighted = ‖M_i N_j‖ / (‖M_i‖ ‖N_j‖) of the matrices themselves."""

    squares: Float64
    weighted: Float64


def met(writes: Spans, reads: Spans) -> Met:
    """Writes (a, p, d) and reads (c, q, d), whose rows span what each reads -> (a, c).

    M_i N_j = L diag(s) R_i R_jᵀ diag(t) L', so both come of the one product R_i R_jᵀ.
    """
    (a, p, d), (c, q, _) = writes.rows.shape, reads.rows.shape
    product = writes.rows.reshape(a * p, d) @ reads.rows.reshape(c * q, d).T
    squared = np.square(product, out=product).reshape(a, p, c, q)
    return Met(
        squares=_contracted(squared, writes.used(), reads.used()),
        weighted=np.sqrt(_contracted(squared, _energies(writes), _energies(reads))),
    )


def _contracted(squared: Float64, of_writes: Float64, of_reads: Float64) -> Float64:
    """Σ_pq x_ap squared_apcq y_cq."""
    by_writer = np.matmul(of_writes[:, None, :], squared.reshape(*squared.shape[:2], -1))
    return np.einsum("acq,cq->ac", by_writer.reshape(len(squared), *squared.shape[2:]), of_reads)


def _energies(spans: Spans) -> Float64:
    """s² / Σ s²: (a, p); zeros for a zero matrix."""
    squares = spans.singular_values**2
    total = squares.sum(axis=-1, keepdims=True)
    return np.divide(squares, total, out=np.zeros_like(squares), where=total > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A matrix that reads the stream: of a query head, or of a key/value head."""

    block: int
    matrix: str
    head: int | None
    kv_head: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reads:
    """Readers in columns, writers in rows: overlap, weighted (a, c), nan where a reader is not in
    a later block. ranks (c); degrees: the angles of each such pair, if asked for."""

    readers: Sequence[Reader]
    ranks: Sequence[int]
    overlap: Float64
    weighted: Float64
    degrees: Sequence[Sequence[Float64 | None]] | None


def readers_of(config: ModelConfig, heads: Sequence[HeadId]) -> Sequence[Reader]:
    """W_Q of each head, W_K and W_V of each key/value head among them, block by block."""
    group = config.attention.n_heads // config.attention.n_kv_heads
    found = []
    for block, places in by_block(heads).items():
        queries = [heads[at].head for at in places]
        shared = list(dict.fromkeys(head // group for head in queries))
        found += [Reader(block=block, matrix="W_Q", head=x, kv_head=x // group) for x in queries]
        for matrix in ("W_K", "W_V"):
            found += [Reader(block=block, matrix=matrix, head=None, kv_head=x) for x in shared]
    return found


def columns_of(heads: Heads) -> Sequence[Spans]:
    """The column spaces of W_Q of each head, W_K and W_V of each key/value head."""
    first = [heads.kv_heads.index(x) for x in dict.fromkeys(heads.kv_heads)]
    matrices = (heads.W_Q, heads.W_K[first], heads.W_V[first])
    return [spans_of(M.swapaxes(-1, -2)) for M in matrices]


def reads(
    config: ModelConfig,
    weights: ModelWeights,
    writers: Sequence[HeadId],
    writes: Sequence[Spans],
    readers: Sequence[HeadId],
    *,
    fold_norm: bool,
    with_angles: bool,
    check: Callable[[], None],
) -> Reads:
    """Every writer (its span among `writes`, one Spans a block) with every later reader."""
    listed = readers_of(config, readers)
    overlap = np.full((len(writers), len(listed)), np.nan)
    weighted = overlap.copy()
    degrees: list[list[Float64 | None]] = [[None] * len(listed) for _ in writers]
    ranks: list[int] = []
    by_writer = by_block(writers)
    for block, places in by_block(readers).items():
        heads = gathered(config, weights, readers, places, fold_norm=fold_norm)
        for spans in columns_of(heads):
            columns = range(len(ranks), len(ranks) + len(spans.ranks))
            ranks += spans.ranks
            for (earlier, rows), span in zip(by_writer.items(), writes, strict=True):
                if earlier >= block:
                    continue
                check()
                pair, found = np.ix_(rows, columns), met(span, spans)
                overlap[pair] = shared(found.squares, span, spans)
                weighted[pair] = found.weighted
                if with_angles:
                    _put_angles(degrees, (rows, columns), (span, spans), check)
    return Reads(
        readers=listed,
        ranks=ranks,
        overlap=overlap,
        weighted=weighted,
        degrees=degrees if with_angles else None,
    )


def shared(squares: Float64, writes: Spans, reads: Spans) -> Float64:
    """The overlaps of (a) with (c) subspaces from ‖A_i B_jᵀ‖²: (a, c) -> (a, c)."""
    p = np.array(writes.ranks, np.float64)[:, None]
    q = np.array(reads.ranks, np.float64)[None, :]
    return angles.overlap(squares, *np.broadcast_arrays(p, q))


def _put_angles(
    degrees: list[list[Float64 | None]],
    places: tuple[Sequence[int], Sequence[int]],
    spans: tuple[Spans, Spans],
    check: Callable[[], None],
) -> None:
    for at, row in enumerate(places[0]):
        check()
        for other, column in enumerate(places[1]):
            bases = spans[0].basis(at), spans[1].basis(other)
            degrees[row][column] = angles.principal_angles(*bases)
