"""What a feed-forward network reads of what a head writes, and where it writes itself.

Its matrices are wide: each is a (d, d) Gram matrix here, from which rank, basis and weighted scores
come. Scores below 1e-7 or so are lost in it, far below what chance gives.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compute.block_weights import BlockWeights
from compute.circuits import angles
from compute.circuits.heads import (
    Float64,
    HeadId,
    by_block,
    ffn_norm,
    folding,
    in_range,
)
from compute.circuits.subspace import Spans, ranks_of
from compute.config import ModelConfig
from compute.types import Array
from compute.weights import ModelWeights


@dataclass(frozen=True, slots=True, eq=False)
class Wide:
    """A (d, d) Gram matrix M Mᵀ and an orthonormal basis (q, d) of its range."""

    gram: Float64
    basis: Float64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Network:
    """A matrix of a block's network against the heads: rank; overlap and weighted (a), nan where
    it cannot read what a head writes; width: its columns, of all experts together."""

    block: int
    matrix: str
    rank: int
    width: int
    overlap: Float64
    weighted: Float64


def networks(
    config: ModelConfig,
    weights: ModelWeights,
    writers: Sequence[HeadId],
    writes: Sequence[Spans],
    blocks: Sequence[int],
    *,
    matrices: Sequence[str],
    fold_norm: bool,
    check: Callable[[], None],
) -> Sequence[Network]:
    """The matrices of the networks of these blocks against each head's write subspace.

    W_in and W_gate read the heads of earlier blocks, and of their own where the sublayers follow
    each other. W_out writes, as a head does, and is compared with every head.
    """
    found = []
    for block in blocks:
        for matrix in matrices:
            check()
            M = columns_of(config, weights.blocks[block], matrix, fold_norm=fold_norm)
            wide = wide_of(M)
            last = config.n_layers if matrix == "W_out" else last_read(config, block)
            overlap, weighted = _against(wide, writers, writes, last, check)
            found.append(
                Network(
                    block=block,
                    matrix=matrix,
                    rank=len(wide.basis),
                    width=M.shape[-1],
                    overlap=overlap,
                    weighted=weighted,
                )
            )
    return found


def read_by(config: ModelConfig) -> Sequence[str]:
    """The matrices by which a network reads the stream."""
    gated = config.ffn.kind == "gated" or (
        config.ffn.kind == "moe" and config.ffn.expert == "gated"
    )
    return ("W_in", "W_gate") if gated else ("W_in",)


def columns_of(
    config: ModelConfig, block: BlockWeights, matrix: str, *, fold_norm: bool
) -> Float64:
    """W_in, W_gate, or W_outᵀ, (d, f); of a mixture (d, e f), its experts side by side."""
    taken: Mapping[str, Array] = {
        "W_in": block.ffn.W_in,
        "W_gate": block.ffn.W_gate,
        "W_out": block.ffn.W_out.swapaxes(-1, -2),
    }
    experts = in_range(taken[matrix]).reshape(-1, *taken[matrix].shape[-2:])
    side_by_side = experts.swapaxes(0, 1).reshape(experts.shape[1], -1)
    if matrix == "W_out":
        return side_by_side
    return folding(config.norm, ffn_norm(config, block), fold_norm)(side_by_side)


def wide_of(M: Float64) -> Wide:
    """The Gram matrix M Mᵀ of M (d, f), with the rank of M's singular values."""
    gram = M @ M.T
    energies, directions = np.linalg.eigh(gram)
    singular_values = np.sqrt(np.maximum(energies, 0.0))[::-1]
    (rank,) = ranks_of(singular_values[None, : min(M.shape)], max(M.shape))
    return Wide(gram, directions.T[::-1][:rank])


def last_read(config: ModelConfig, block: int) -> int:
    """The last block whose heads a network's input has in it: its own, if not beside it."""
    return block if config.topology == "sequential" else block - 1


def _against(
    wide: Wide,
    writers: Sequence[HeadId],
    writes: Sequence[Spans],
    last: int,
    check: Callable[[], None],
) -> tuple[Float64, Float64]:
    """Overlaps and weighted scores (a) of the heads up to the block `last`; nan for others."""
    overlap, weighted = np.full(len(writers), np.nan), np.full(len(writers), np.nan)
    for (block, places), spans in zip(by_block(writers).items(), writes, strict=True):
        if block > last:
            break
        check()
        p, q = np.array(spans.ranks, np.float64), np.float64(len(wide.basis))
        overlap[places] = angles.overlap(_squares(wide, spans), *np.broadcast_arrays(p, q))
        weighted[places] = _weighted(wide, spans)
    return overlap, weighted


def _squares(wide: Wide, spans: Spans) -> Float64:
    """‖A_i Bᵀ‖²: (a). A basis of the whole stream has every A in it."""
    if len(wide.basis) == wide.basis.shape[-1]:
        return np.array(spans.ranks, np.float64)
    met = np.square(spans.rows @ wide.basis.T).sum(axis=-1)
    return np.vecdot(met, spans.used())


def _weighted(wide: Wide, spans: Spans) -> Float64:
    """‖M_i W‖ / (‖M_i‖ ‖W‖) = sqrt(tr(M_i W Wᵀ M_iᵀ) / …): (a)."""
    energies = np.vecdot(spans.rows @ wide.gram, spans.rows)
    squares = spans.singular_values**2
    total = squares.sum(axis=-1) * np.trace(wide.gram)
    met = np.maximum(np.vecdot(squares, energies), 0.0)
    return np.sqrt(np.divide(met, total, out=np.zeros_like(met), where=total > 0))
