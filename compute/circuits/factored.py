"""A circuit: a (d, d) matrix of small rank, kept as the product of its two factors.

QK: W_Q W_Kᵀ, by which a head chooses where to look. OV: W_V W_O, by which it turns what it looks at
into what it writes. Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits".
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compute.circuits.heads import Float64, Heads

Complex = npt.NDArray[np.complex128]


@dataclass(frozen=True, slots=True, eq=False)
class Circuits:
    """left @ right for a heads: left (a, d, k), right (a, k, d)."""

    left: Float64
    right: Float64

    def singular_values(self) -> Float64:
        """The largest min(k, d) of each, largest first: (a, p); all others are 0.

        left = Q R, rightᵀ = P T: the product Q (R Tᵀ) Pᵀ has the singular values of R Tᵀ.
        """
        left, right = triangles(self.left), triangles(self.right.swapaxes(-1, -2))
        product = left @ right.swapaxes(-1, -2)
        return np.asarray(np.linalg.svd(product, compute_uv=False), np.float64)

    def eigenvalues(self) -> Complex:
        """The k eigenvalues that may differ from 0, largest modulus first: (a, k).

        left right and right left, (k, k), have the same ones but for zeros.
        """
        values = np.asarray(np.linalg.eigvals(self.right @ self.left), np.complex128)
        order = np.lexsort((-values.imag, -values.real, -np.abs(values)), axis=-1)
        return np.take_along_axis(values, order, axis=-1)

    def between(self, rows: Float64, columns: Float64) -> Float64:
        """rows (left right) columns: (t, d), (d, t) -> (a, t, t)."""
        return (rows @ self.left) @ (self.right @ columns)


def qk(heads: Heads) -> Circuits:
    """W_Q W_Kᵀ."""
    return Circuits(heads.W_Q, heads.W_K.swapaxes(-1, -2))


def ov(heads: Heads) -> Circuits:
    """W_V W_O."""
    return Circuits(heads.W_V, heads.W_O)


def copying(eigenvalues: Complex) -> Float64:
    """Σ λ / Σ |λ|, from -1 to 1: (..., k) -> (...); 0 where all λ are 0.

    1: the circuit writes what it reads (all eigenvalues positive). Elhage et al. 2021, "Summarizing
    OV/QK matrices": there of W_E W_OV W_U, from token to token; of W_OV alone it tells of
    directions of the stream. The sum is real: complex eigenvalues come in pairs.
    """
    total = np.abs(eigenvalues).sum(axis=-1)
    return np.divide(
        eigenvalues.real.sum(axis=-1), total, out=np.zeros_like(total), where=total > 0
    )


def triangles(M: Float64) -> Float64:
    """R of M = Q R, Q with orthonormal columns: (a, d, k) -> (a, min(d, k), k). ‖M X‖ = ‖R X‖."""
    return np.asarray(np.linalg.qr(M, mode="r"), np.float64)
