"""The activations of a feed-forward layer: pure, elementwise, chosen from a table by name."""

from collections.abc import Mapping
from math import inf, isfinite, pi, sqrt
from types import MappingProxyType

import numpy as np

from compute.erf import Kernel, elementwise, erf_kernel
from compute.types import Array

# Below it every smooth activation is -0 in float32 and float64; -inf · 0 would be NaN.
_FLOOR = -1000.0
_TANH_SLOPE = 2.0 * sqrt(2.0 / pi)
_TANH_CUBIC = 0.044715 * _TANH_SLOPE
_QUICK_SLOPE = 1.702


def activate(name: str, x: Array, out: Array | None = None) -> Array:
    """f(x) for the activation f of that name in `ACTIVATIONS`: any shape -> that shape.

    Written into out where it is given (it may be x), else into a new array; "identity" without
    out returns x itself. An element's bits depend on its value alone: not on its place, the
    memory layout or out. f(-inf) is f's limit, NaN stays NaN, no overflow is reported.
    Error, measured on [-30, 30]: at most 1.4e-7 max(1, |x|) in float32, 4.5e-16 max(1, |x|) in
    float64; gelu's own definition leaves no relative accuracy where it is nearly 0.
    ValueError for an unknown name or an out of another shape, TypeError unless x and out are
    both float32 or both float64.
    """
    kernel = ACTIVATIONS.get(name)
    if kernel is None:
        raise ValueError(f"an activation is one of {', '.join(ACTIVATIONS)}; got {name!r}")
    if out is None and kernel is _identity:
        return x
    return elementwise(kernel, x, np.empty_like(x) if out is None else out)


def _gelu(x: Array, out: Array, scratch: Array) -> None:
    """x Φ(x) = x · 0.5 (1 + erf(x/√2)). Hendrycks & Gimpel, arXiv:1606.08415, section 2."""
    cdf = scratch[0]
    np.multiply(x, sqrt(0.5), out=cdf)
    erf_kernel(cdf, cdf, scratch[1:])
    cdf += 1.0
    cdf *= 0.5
    np.multiply(_floored(x, out), cdf, out=out)


def _gelu_tanh(x: Array, out: Array, scratch: Array) -> None:
    """x · 0.5 (1 + tanh(u)) = x sigmoid(2u), u = √(2/π) (x + 0.044715 x³). arXiv:1606.08415, 2."""
    exponent = scratch[0]
    np.multiply(x, x, out=exponent)
    exponent *= -_TANH_CUBIC
    exponent -= _TANH_SLOPE
    exponent *= x
    _divide_by_one_plus_exp(x, exponent, out)


def _quick_gelu(x: Array, out: Array, scratch: Array) -> None:
    """x sigmoid(1.702 x). arXiv:1606.08415, section 2; CLIP's activation."""
    exponent = scratch[0]
    np.multiply(x, -_QUICK_SLOPE, out=exponent)
    _divide_by_one_plus_exp(x, exponent, out)


def _silu(x: Array, out: Array, scratch: Array) -> None:
    """x sigmoid(x). arXiv:1606.08415, section 4; arXiv:1710.05941, swish with β = 1."""
    exponent = scratch[0]
    np.negative(x, out=exponent)
    _divide_by_one_plus_exp(x, exponent, out)


def _divide_by_one_plus_exp(x: Array, exponent: Array, out: Array) -> None:
    """out = x/(1 + exp(exponent)) = x sigmoid(-exponent); exponent is overwritten.

    Where exp overflows to inf, the quotient is the -0 that it should be.
    """
    np.exp(exponent, out=exponent)
    exponent += 1.0
    np.divide(_floored(x, out), exponent, out=out)


def _floored(x: Array, out: Array) -> Array:
    """x, or where it is not finite max(x, floor) in out; a sum of squares tells at little cost."""
    return x if isfinite(np.dot(x, x)) else x.clip(_FLOOR, inf, out=out)


def _relu(x: Array, out: Array, scratch: Array) -> None:
    """max(x, 0)."""
    np.maximum(x, 0.0, out=out)


def _relu2(x: Array, out: Array, scratch: Array) -> None:
    """max(x, 0)². Primer, arXiv:2109.08668, section 4."""
    np.maximum(x, 0.0, out=out)
    out *= out


def _identity(x: Array, out: Array, scratch: Array) -> None:
    """x."""
    np.copyto(out, x)


ACTIVATIONS: Mapping[str, Kernel] = MappingProxyType(
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
"""Name -> the function that writes one block of it."""
