"""What matrices of the same shapes would score that have nothing to do with each other.

All factors have independent standard normal entries. Scores do not change when the stream is
rotated, so only triangles are drawn: a normal M (p, q) is L Q with Q a uniformly random rotation
and L lower triangular, its diagonal chi-distributed and the rest normal (Bartlett 1933). So no
sample is larger than a head's own width. From a fixed seed: an answer is the same every time.

The overlap of subspaces needs no sample: `angles.expected_overlap` is exact.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import hypot
from typing import TypeAlias

import numpy as np

from compute.circuits import factored, subspace
from compute.circuits.heads import Float64

SAMPLES = 20
SEED = 0
_REMEMBERED = 256

Rng: TypeAlias = "np.random.Generator"  # in quotes: NumPy imports it when it is asked for


@dataclass(frozen=True, slots=True)
class Baseline:
    """Mean and standard deviation of a score over random matrices."""

    mean: float
    std: float


@lru_cache(maxsize=_REMEMBERED)
def of_head(d: int, v: int) -> Mapping[str, Baseline]:
    """effective_rank and participation_ratio of W_O (v, d), copying of W_V W_O, W_V (d, v)."""

    def scores(rng: Rng) -> Mapping[str, float]:
        outputs = triangle(rng, v, d)
        singular_values = np.asarray(np.linalg.svd(outputs, compute_uv=False), np.float64)
        values = rng.standard_normal((outputs.shape[1], v))
        eigenvalues = factored.Circuits(values[None], outputs[None]).eigenvalues()
        return {
            "effective_rank": float(subspace.effective_rank(singular_values)),
            "participation_ratio": float(subspace.participation_ratio(singular_values)),
            "copying": float(factored.copying(eigenvalues)[0]),
        }

    return _over_samples(scores)


@lru_cache(maxsize=_REMEMBERED)
def of_token_copying(d: int, v: int, vocab: int) -> Baseline:
    """copying of W_E W_V W_O W_U for W_E (V, d), W_V (d, v), W_O (v, d), W_U (d, V)."""

    def score(rng: Rng) -> Mapping[str, float]:
        outputs = triangle(rng, v, d)
        read_out = triangle(rng, outputs.shape[1], vocab)
        embedded = triangle(rng, read_out.shape[1], d)
        values = rng.standard_normal((embedded.shape[1], v))
        circuits = factored.Circuits(values[None], (outputs @ read_out @ embedded)[None])
        return {"": float(factored.copying(circuits.eigenvalues())[0])}

    return _over_samples(score)[""]


@lru_cache(maxsize=_REMEMBERED)
def of_composition(d: int, v: int, k: int) -> Baseline:
    """‖W_V W_O N P‖ / (‖W_V W_O‖ ‖N P‖) for W_V (d, v), W_O (v, d), N (d, k), P (k, d).

    N P is W_Q W_Kᵀ or, with k = v, a later W_V W_O. The mean of its square is exactly 1 / d.
    """

    def score(rng: Rng) -> Mapping[str, float]:
        writes = triangle(rng, v, d).T @ triangle(rng, v, d)
        outer = triangle(rng, k, d)
        met = rng.standard_normal((writes.shape[1], k)) @ outer
        rest = _rest(rng, d - writes.shape[1], k, outer)
        return {"": _norm(writes @ met) / (_norm(writes) * hypot(_norm(met), rest))}

    return _over_samples(score)[""]


@lru_cache(maxsize=_REMEMBERED)
def of_product(d: int, v: int, k: int) -> Baseline:
    """‖M N‖ / (‖M‖ ‖N‖) for M (v, d) and N (d, k). The mean of its square is exactly 1 / d."""

    def score(rng: Rng) -> Mapping[str, float]:
        writes = triangle(rng, v, d)
        met = triangle(rng, writes.shape[1], k)
        others = (d - writes.shape[1]) * k
        rest = float(np.sqrt(rng.chisquare(others))) if others else 0.0
        return {"": _norm(writes @ met) / (_norm(writes) * hypot(_norm(met), rest))}

    return _over_samples(score)[""]


def triangle(rng: Rng, p: int, q: int) -> Float64:
    """L (p, min(p, q)) of a standard normal matrix (p, q) = L Q."""
    width = min(p, q)
    lower = np.tril(rng.standard_normal((p, width)), -1)
    np.fill_diagonal(lower, np.sqrt(rng.chisquare(q - np.arange(width))))
    return lower


def _rest(rng: Rng, rows: int, k: int, outer: Float64) -> float:
    """‖N' P‖ for the rows of N that the earlier head does not meet, (rows, k)."""
    return _norm(triangle(rng, k, rows).T @ outer) if rows else 0.0


def _norm(M: Float64) -> float:
    return float(np.linalg.norm(M))


def _over_samples(scores: Callable[[Rng], Mapping[str, float]]) -> Mapping[str, Baseline]:
    samples = [scores(rng) for rng in _generators()]
    return {
        name: Baseline(float(np.mean(values)), float(np.std(values, ddof=1)))
        for name in samples[0]
        for values in [[sample[name] for sample in samples]]
    }


def _generators() -> Iterator[Rng]:
    return (np.random.Generator(np.random.PCG64([SEED, at])) for at in range(SAMPLES))
