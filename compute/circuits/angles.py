"""How two subspaces lie to each other: principal angles, overlap, what chance would give."""

import numpy as np

from compute.circuits.heads import Float64


def principal_angles(A: Float64, B: Float64) -> Float64:
    """The principal angles in degrees between row spaces, smallest first: (p, d), (q, d) -> (min).

    A and B have orthonormal rows. cos θ_i are the singular values of A Bᵀ; where θ is small its
    sine is taken instead, from the part of the smaller space that is outside of the larger one:
    arccos near 1 loses half of the digits. Björck and Golub 1973.
    """
    small, large = (A, B) if len(A) <= len(B) else (B, A)
    across = small @ large.T
    cosines = np.linalg.svd(across, compute_uv=False)
    sines = np.linalg.svd(small - across @ large, compute_uv=False)[::-1]
    by_sine = np.arcsin(np.minimum(sines, 1.0))
    by_cosine = np.arccos(np.minimum(cosines, 1.0))
    return np.degrees(np.where(cosines**2 > 0.5, by_sine, by_cosine))


def overlap(squares: Float64, p: Float64, q: Float64) -> Float64:
    """‖A Bᵀ‖_F² / min(p, q), the mean squared cosine of the principal angles; 0 for an empty space.

    squares: ‖A Bᵀ‖_F² of orthonormal A (p, d) and B (q, d). 1: the smaller lies in the larger;
    0: they are orthogonal.
    """
    narrow = np.minimum(p, q)
    return np.divide(
        np.minimum(squares, narrow), narrow, out=np.zeros_like(squares), where=narrow > 0
    )


def expected_overlap(p: Float64, q: Float64, d: int) -> tuple[Float64, Float64]:
    """Mean and standard deviation of the overlap of random subspaces of dimensions p and q in R^d.

    Exact, for uniformly random subspaces: tr(P Q) has mean p q / d and variance
    2 p q (d - p) (d - q) / (d² (d - 1) (d + 2)); the overlap is tr(P Q) / min(p, q), so its mean is
    max(p, q) / d.
    """
    narrow = np.minimum(p, q)
    some = narrow > 0
    mean = np.where(some, np.maximum(p, q) / d, 0.0)
    variance = 2.0 * p * q * (d - p) * (d - q) / (float(d) ** 2 * max(d - 1, 1) * (d + 2))
    spread = np.divide(np.sqrt(variance), narrow, out=np.zeros_like(mean), where=some)
    return mean, spread
