"""Functions of one row or one number: norms, softmax, activations. Literal, float64."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Config = Mapping[str, Any]
Weights = Mapping[str, Array]
Stages = dict[str, Array]
"""Stage name -> value, in order of computation."""


def layer_norm_scale(x: Array, eps: float) -> float:
    """sqrt(mean((x - mean(x))²) + eps); x: (d,)."""
    mean = np.sum(x) / len(x)
    return math.sqrt(np.sum((x - mean) ** 2) / len(x) + eps)


def layer_norm(x: Array, eps: float) -> Array:
    """(x - mean(x)) / sqrt(var(x) + eps), before gain and bias; (d,) -> (d,)."""
    mean = np.sum(x) / len(x)
    return (x - mean) / layer_norm_scale(x, eps)


def rms_norm_scale(x: Array, eps: float) -> float:
    """sqrt(mean(x²) + eps); x: (d,)."""
    return math.sqrt(np.sum(x**2) / len(x) + eps)


def rms_norm(x: Array, eps: float) -> Array:
    """x / sqrt(mean(x²) + eps), before the gain; (d,) -> (d,)."""
    return x / rms_norm_scale(x, eps)


def softmax(scores: Array) -> Array:
    """exp(s_j) / Σ_j exp(s_j), -inf taking no part; a row of nothing else is all zeros."""
    largest = max(scores)
    if largest == -math.inf:
        return np.zeros(len(scores))
    powers = np.array([math.exp(score - largest) for score in scores])
    return np.asarray(powers / np.sum(powers))


def softmax_with_sink(scores: Array, sink: float) -> tuple[Array, float]:
    """Softmax over the scores and one more logit: the scores' shares, and the logit's own."""
    shares = softmax(np.append(scores, sink))
    return shares[:-1], float(shares[-1])


def softcap(x: float, cap: float | None) -> float:
    """cap · tanh(x / cap); x itself without a cap."""
    return x if cap is None else cap * math.tanh(x / cap)


def sigmoid(x: float) -> float:
    """1 / (1 + e^-x)."""
    if x < 0:  # e^-x overflows below -709
        return math.exp(x) / (1.0 + math.exp(x))
    return 1.0 / (1.0 + math.exp(-x))


def gelu(x: float) -> float:
    """x Φ(x), Φ the normal distribution function."""
    return x * 0.5 * (1.0 + math.erf(x / math.sqrt(2.0)))


def gelu_tanh(x: float) -> float:
    """x/2 (1 + tanh(sqrt(2/π) (x + 0.044715 x³)))."""
    return 0.5 * x * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def quick_gelu(x: float) -> float:
    """x sigmoid(1.702 x)."""
    return x * sigmoid(1.702 * x)


def relu(x: float) -> float:
    """max(x, 0)."""
    return max(x, 0.0)


def relu2(x: float) -> float:
    """max(x, 0)²."""
    return max(x, 0.0) ** 2


def silu(x: float) -> float:
    """x sigmoid(x)."""
    return x * sigmoid(x)


def identity(x: float) -> float:
    """x."""
    return x


ACTIVATIONS: Mapping[str, Callable[[float], float]] = {
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "quick_gelu": quick_gelu,
    "relu": relu,
    "relu2": relu2,
    "silu": silu,
    "identity": identity,
}


def activate(name: str, x: Array) -> Array:
    """The named activation of each number of a matrix; (n, f) -> (n, f)."""
    act = ACTIVATIONS[name]
    return np.array([[act(float(number)) for number in row] for row in x])


def project(x: Array, matrix: Array, bias: Array) -> Array:
    """x_i W + b for each token i; (n, a), (a, c), (c,) -> (n, c)."""
    return np.array([np.dot(row, matrix) + bias for row in x])
