"""Where a head can write: the row space of W_O^(r), its dimension and how evenly it is used."""

from dataclasses import dataclass

import numpy as np

from compute.circuits.heads import Float64

STORED = float(np.finfo(np.float32).eps)
"""Weights are stored as float32: a singular value below its rounding is none."""


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Row spaces of a stack of matrices M = L diag(s) R.

    singular_values s (a, p), largest first; rows R (a, p, d), orthonormal, in the same order;
    ranks (a): the first so many rows of R span what M writes. p = min(v, d).
    """

    singular_values: Float64
    rows: Float64
    ranks: tuple[int, ...]

    def basis(self, at: int) -> Float64:
        """An orthonormal basis of the row space: (rank, d), each row's largest entry positive."""
        rows = self.rows[at, : self.ranks[at]]
        largest = np.abs(rows).argmax(axis=-1)
        return rows * np.sign(rows[np.arange(len(rows)), largest])[:, None]

    def used(self) -> Float64:
        """1.0 for each singular value that counts to the rank, else 0.0: (a, p)."""
        places = np.arange(self.singular_values.shape[-1])
        return (places < np.array(self.ranks)[:, None]).astype(np.float64)


def spans_of(M: Float64) -> Spans:
    """The row spaces of (a, v, d)."""
    _, singular_values, rows = np.linalg.svd(M, full_matrices=False)
    return Spans(singular_values, rows, ranks_of(singular_values, max(M.shape[-2:])))


def ranks_of(singular_values: Float64, longest: int) -> tuple[int, ...]:
    """How many singular values are above s_1 · longest · eps(float32): (a, p) -> a numbers.

    NumPy's matrix_rank rule with the precision the weights are stored in. `longest` is the larger
    side of the matrix.
    """
    tolerance = singular_values.max(axis=-1, initial=0.0, keepdims=True) * longest * STORED
    return tuple(int(count) for count in (singular_values > tolerance).sum(axis=-1))


def effective_rank(singular_values: Float64) -> Float64:
    """exp(-Σ p_i ln p_i), p_i = s_i / Σ s: (..., p) -> (...); 0 for a zero matrix.

    Roy and Vetterli 2007, "The effective rank". From 1 (one direction) to p (all alike).
    """
    shares = _shares(singular_values)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.where(shares.any(axis=-1), np.exp(-np.vecdot(shares, logs)), 0.0)


def participation_ratio(singular_values: Float64) -> Float64:
    """(Σ s²)² / Σ s⁴: (..., p) -> (...); 0 for a zero matrix. How many directions hold its energy.

    Never more than the effective rank of the squares; large singular values weigh more.
    """
    shares = _shares(_scaled(singular_values) ** 2)
    squares = np.vecdot(shares, shares)
    return np.divide(1.0, squares, out=np.zeros_like(squares), where=squares > 0)


def _scaled(values: Float64) -> Float64:
    """By the largest, so that squares stay in range."""
    largest = values.max(axis=-1, initial=0.0, keepdims=True)
    return np.divide(values, largest, out=np.zeros_like(values), where=largest > 0)


def _shares(values: Float64) -> Float64:
    total = values.sum(axis=-1, keepdims=True)
    return np.divide(values, total, out=np.zeros_like(values), where=total > 0)
