"""f' of every activation: pure, elementwise, chosen from a table by name.

At a kink there is no derivative: relu's is taken as 0 at 0, as PyTorch takes it.
"""

from collections.abc import Callable, Mapping
from math import pi, sqrt
from types import MappingProxyType

import numpy as np

from compute.erf import elementwise, erf_kernel
from compute.types import Array

_FAR = 1000.0
"""Beyond it every smooth f' is 0 or 1 to the last bit, and its factors would overflow."""

_TANH_SLOPE = 2.0 * sqrt(2.0 / pi)
_TANH_CUBIC = 0.044715
_QUICK_SLOPE = 1.702


def slope(name: str, x: Array) -> Array:
    """f'(x) for the activation f of that name: any shape -> that shape."""
    with np.errstate(over="ignore", under="ignore"):
        return SLOPES[name](x)


def _gelu(x: Array) -> Array:
    """(x Φ(x))' = Φ(x) + x φ(x),  φ(x) = exp(-x²/2) / √(2π)."""
    near = x.clip(-_FAR, _FAR)
    erf = elementwise(erf_kernel, near * sqrt(0.5), np.empty_like(near))
    return 0.5 * (1.0 + erf) + near * np.exp(-0.5 * near * near) / sqrt(2.0 * pi)


def _gelu_tanh(x: Array) -> Array:
    """(x σ(u))' = σ(u) + x σ(u) (1 - σ(u)) u',  u = 2 √(2/π) (x + 0.044715 x³)."""
    near = x.clip(-_FAR, _FAR)
    squares = near * near
    u = _TANH_SLOPE * near * (1.0 + _TANH_CUBIC * squares)
    return _of_swish(near, u, _TANH_SLOPE * (1.0 + 3.0 * _TANH_CUBIC * squares))


def _quick_gelu(x: Array) -> Array:
    """(x σ(u))' = σ(u) + x σ(u) (1 - σ(u)) u',  u = 1.702 x."""
    near = x.clip(-_FAR, _FAR)
    return _of_swish(near, _QUICK_SLOPE * near, np.full_like(near, _QUICK_SLOPE))


def _silu(x: Array) -> Array:
    """(x σ(x))' = σ(x) + x σ(x) (1 - σ(x))."""
    near = x.clip(-_FAR, _FAR)
    return _of_swish(near, near, np.ones_like(near))


def _of_swish(x: Array, u: Array, u_slope: Array) -> Array:
    opened, closed = 1.0 / (1.0 + np.exp(-u)), 1.0 / (1.0 + np.exp(u))
    return opened + x * opened * closed * u_slope


def _relu(x: Array) -> Array:
    """max(x, 0)' = 1 where x > 0, else 0."""
    return (x > 0.0).astype(x.dtype)


def _relu2(x: Array) -> Array:
    """(max(x, 0)²)' = 2 max(x, 0)."""
    return 2.0 * np.maximum(x, 0.0)


def _identity(x: Array) -> Array:
    """x' = 1."""
    return np.ones_like(x)


SLOPES: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {
        "gelu": _gelu,
        "gelu_tanh": _gelu_tanh,
        "quick_gelu": _quick_gelu,
        "relu": _relu,
        "relu2": _relu2,
        "silu": _silu,
        "identity": _identity,
    }
)
"""Name of an activation -> its derivative."""
