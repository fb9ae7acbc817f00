"""How much a later head reads of what an earlier one writes: Q-, K- and V-composition.

Row vectors: scores are x W_Q W_Kᵀ yᵀ, so with W_QK = W_Q W_Kᵀ and W_OV = W_V W_O an earlier head a
and a later head b compose as

    Q: ‖W_OV^a W_QK^b‖ / (‖W_OV^a‖ ‖W_QK^b‖)      b's queries read what a wrote
    K: ‖W_OV^a W_QK^bᵀ‖ / (‖W_OV^a‖ ‖W_QK^b‖)     b's keys do
    V: ‖W_OV^a W_OV^b‖ / (‖W_OV^a‖ ‖W_OV^b‖)      b's values do

with Frobenius norms, each from 0 to 1. Elhage et al. 2021, "Additional intuition and observations
about composition", where W_OV stands transposed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compute.circuits.factored import triangles
from compute.circuits.heads import Float64, HeadId, Heads, by_block, gathered
from compute.config import ModelConfig
from compute.weights import ModelWeights

KINDS = ("q", "k", "v")


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """A (a, v, d) with ‖A X‖ = ‖W_OV X‖ for every X, and norms (a) = ‖W_OV‖."""

    rows: Float64
    norms: Float64


def written(heads: Heads) -> Written:
    """R W_O with W_V = Q R: the OV circuits of a heads without their orthonormal factor."""
    rows = triangles(heads.W_V) @ heads.W_O
    return Written(rows, np.linalg.norm(rows, axis=(-2, -1)))


def read(heads: Heads) -> Mapping[str, Float64]:
    """q, k, v -> B (a, d, k) with ‖X B‖ = ‖X W_QK‖, ‖X W_QKᵀ‖, ‖X W_OV‖ for every X."""
    outputs = heads.W_O.swapaxes(-1, -2)
    return {
        "q": heads.W_Q @ triangles(heads.W_K).swapaxes(-1, -2),
        "k": heads.W_K @ triangles(heads.W_Q).swapaxes(-1, -2),
        "v": heads.W_V @ triangles(outputs).swapaxes(-1, -2),
    }


def scores(earlier: Written, later: Float64) -> Float64:
    """‖A_i B_j‖ / (‖A_i‖ ‖B_j‖): (a, v, d) and (c, d, k) -> (a, c); 0 where a norm is 0."""
    (a, v, d), (c, _, k) = earlier.rows.shape, later.shape
    side_by_side = later.swapaxes(0, 1).reshape(d, c * k)
    products = (earlier.rows.reshape(a * v, d) @ side_by_side).reshape(a, v, c, k)
    norms = np.sqrt(np.einsum("avck,avck->ac", products, products))
    sizes = earlier.norms[:, None] * np.linalg.norm(later, axis=(-2, -1))
    return np.divide(norms, sizes, out=np.zeros_like(norms), where=sizes > 0)


def composition(
    config: ModelConfig,
    weights: ModelWeights,
    writers: Sequence[HeadId],
    readers: Sequence[HeadId],
    *,
    fold_norm: bool,
    check: Callable[[], None],
) -> Mapping[str, Float64]:
    """q, k, v -> (writers, readers): nan where the reader is in no later block."""
    found = {kind: np.full((len(writers), len(readers)), np.nan) for kind in KINDS}
    written_by: dict[int, Written] = {}
    for block, places in by_block(writers).items():
        check()
        heads = gathered(config, weights, writers, places, fold_norm=fold_norm)
        written_by[block] = written(heads)
    rows_of = by_block(writers)
    for block, columns in by_block(readers).items():
        later = read(gathered(config, weights, readers, columns, fold_norm=fold_norm))
        for earlier in (x for x in rows_of if x < block):
            check()
            for kind in KINDS:
                pair = np.ix_(rows_of[earlier], columns)
                found[kind][pair] = scores(written_by[earlier], later[kind])
    return found
