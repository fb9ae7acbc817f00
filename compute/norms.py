"""Norms as equations, chosen from a table by name."""

from collections.abc import Callable, Mapping

import numpy as np

from compute import ops
from compute.types import Array, Equations
from compute.weights import NormWeights

Norm = Callable[[str, Array, NormWeights], Equations]


def layer_norm(name: str, x: Array, w: NormWeights) -> Equations:
    """(x - mean) / sqrt(var + eps) · gain + bias: (..., d) -> (..., d). Ba et al. 2016, eq. 4."""
    centred = ops.centre(x)
    scale = yield f"{name}.scale", ops.root_mean_square(centred, w.eps)
    normalized = yield f"{name}.normalized", np.divide(centred, scale, out=centred)
    return (yield f"{name}.out", ops.scale_rows(normalized, w.gain, w.bias))


def rms_norm(name: str, x: Array, w: NormWeights) -> Equations:
    """x / sqrt(mean(x²) + eps) · gain: (..., d) -> (..., d). Zhang and Sennrich 2019, eq. 4."""
    scale = yield f"{name}.scale", ops.root_mean_square(x, w.eps)
    normalized = yield f"{name}.normalized", x / scale
    return (yield f"{name}.out", ops.scale_rows(normalized, w.gain, w.bias))


def no_norm(name: str, x: Array, w: NormWeights) -> Equations:
    """x itself: the stage does not exist, so nothing is yielded."""
    return x
    yield  # an equation, though an empty one


NORMS: Mapping[str, Norm] = {"layernorm": layer_norm, "rmsnorm": rms_norm, "none": no_norm}
