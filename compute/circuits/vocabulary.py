"""OV circuits from token to token: W_E W_V W_O W_U, (V, V), which is never made."""

from collections.abc import Callable

import numpy as np

from compute.circuits.factored import Circuits
from compute.circuits.heads import Float64, Heads, in_range
from compute.weights import ModelWeights

PIECE = 1 << 11
"""Tokens whose rows are taken as float64 at a time."""


def readout_of_embedding(weights: ModelWeights, check: Callable[[], None]) -> Float64:
    """W_U W_E, summed over the vocabulary piece by piece: (d, V), (V, d) -> (d, d)."""
    W_U, W_E = weights.W_U, weights.W_E
    total = np.zeros((len(W_U), len(W_U)))
    for start in range(0, len(W_E), PIECE):
        check()
        piece = slice(start, start + PIECE)
        total += in_range(W_U[:, piece]) @ in_range(W_E[piece])
    return total


def through_tokens(heads: Heads, returned: Float64) -> Circuits:
    """Circuits with the eigenvalues of W_E W_V W_O W_U, from `returned` = W_U W_E.

    A product of matrices has the same eigenvalues, but for zeros, however it is turned round:
    W_V W_O (W_U W_E).
    """
    return Circuits(heads.W_V, heads.W_O @ returned)
