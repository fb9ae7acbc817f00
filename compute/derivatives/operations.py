"""Vector-Jacobian products: for y = f(x), from the cotangent ȳ of y to the cotangent x̄ = ȳ ∂y/∂x.

Pure functions beside those of `compute.ops`. A cotangent has the shape of what it belongs to, and
may have one axis more in front: many cotangents pulled back at once. Kept values never have it.
"""

import numpy as np

from compute import ops
from compute.types import Array, Bools, Ints


def linear(c: Array, W: Array) -> Array:
    """y = x W + b:  x̄ = ȳ W^T.  (..., o), (i, o) -> (..., i)."""
    return c @ W.T


def heads(c: Array, W: Array) -> Array:
    """y = heads of x W + b:  x̄ = ȳ W^T.  (..., h, n, k), (d, h k) -> (..., n, d)."""
    return ops.across_heads(c) @ W.T


def join_heads(c: Array, W_O: Array) -> Array:
    """y = Σ_r H_r W_O^(r) + b_O:  H̄_r = ȳ W_O^(r)^T.  (..., n, d), (h, v, d) -> (..., h, n, v)."""
    return ops.into_heads(c @ W_O.reshape(-1, W_O.shape[-1]).T, W_O.shape[0])


def rms_scale(c: Array, normalized: Array) -> Array:
    """s = sqrt(mean(x²) + eps):  x̄ = s̄ (x/s) / d.  (..., 1), (..., d) -> (..., d).

    So it is for LayerNorm's s = sqrt(var + eps): the rows of x/s are centred there.
    """
    return c * (normalized / normalized.shape[-1])


def divided(c: Array, normalized: Array, scale: Array) -> tuple[Array, Array]:
    """y = x / s:  x̄ = ȳ / s,  s̄ = -Σ_d ȳ y / s.  (..., d), (..., d), (..., 1)."""
    return c / scale, -(c * normalized).sum(axis=-1, keepdims=True) / scale


def normalize(c: Array, x: Array, gain: Array, eps: float) -> Array:
    """y = x / s · gain + bias, s = sqrt(mean(x²) + eps), in one step: (..., d) -> (..., d)."""
    scale = ops.root_mean_square(x, eps)
    normalized = x / scale
    x_bar, scale_bar = divided(c * gain, normalized, scale)
    return x_bar + rms_scale(scale_bar, normalized)


def capped(c: Array, x: Array, softcap: float) -> Array:
    """y = softcap · tanh(x / softcap):  x̄ = ȳ (1 - tanh²(x / softcap))."""
    bounded = np.tanh(x / softcap)
    return c * (1.0 - bounded * bounded)


def uncapped(c: Array, y: Array, softcap: float) -> Array:
    """The same from y itself:  x̄ = ȳ (1 - (y / softcap)²)."""
    return c * (1.0 - np.square(y / softcap))


def allowed(c: Array, forbidden: Bools) -> Array:
    """y = -inf where forbidden, else x:  x̄ = ȳ, and 0 where forbidden."""
    return np.where(forbidden, np.zeros((), c.dtype), c)


def dots(c: Array, Q: Array, K: Array, scale: float) -> tuple[Array, Array]:
    """y = scale · Q K^T:  Q̄ = scale · ȳ K,  K̄ = scale · ȳ^T Q, summed over a group's heads."""
    scaled = scale * c
    return ops.mix(scaled, K), of_group(scaled, Q, K.shape[-3])


def mix(c: Array, A: Array, V: Array) -> tuple[Array, Array]:
    """H = A V:  Ā = H̄ V^T,  V̄ = A^T H̄, summed over a group's heads."""
    return ops.dots(c, V), of_group(A, c, V.shape[-3])


def of_group(x: Array, y: Array, groups: int) -> Array:
    """Σ_n x^T y over the queries of all heads of a group: (h n i), (h n j) -> (g i j)."""
    return _together(x, groups).swapaxes(-1, -2) @ _together(y, groups)


def _together(x: Array, groups: int) -> Array:
    """(..., h, n, i) -> (..., g, (h/g) n, i)."""
    *batch, heads, rows, inner = x.shape
    return x.reshape(*batch, groups, (heads // groups) * rows, inner)


def softmax(c: Array, A: Array) -> Array:
    """A = softmax(S):  S̄ = A (Ā - Σ_m Ā A).  A sink's share of the row leaves it as it is."""
    return A * (c - (c * A).sum(axis=-1, keepdims=True))


def sink(c: Array, A: Array, sink: Array) -> Array:
    """σ = exp(sinks) / (Σ_m exp(S) + exp(sinks)):  S̄ = -σ̄ σ A.  (..., n) -> (..., n, m)."""
    return -(c * sink)[..., None] * A


def softmax_of_chosen(c: Array, weights: Array, router: Array, experts: Ints) -> Array:
    """p = softmax(r[experts]):  r̄ is softmax's at the chosen, 0 elsewhere. (..., c) -> (..., e)."""
    return _put(softmax(c, weights), router, experts)


def chosen_of_softmax(c: Array, router: Array, experts: Ints) -> Array:
    """p = softmax(r)[experts]:  r̄ = P (p̄ at the chosen - Σ_c p̄ p),  P = softmax(r)."""
    return softmax(_put(c, router, experts), ops.softmax(np.array(router)))


def _put(c: Array, router: Array, experts: Ints) -> Array:
    made = np.zeros((*c.shape[:-1], router.shape[-1]), c.dtype)
    np.put_along_axis(made, np.broadcast_to(experts, c.shape), c, axis=-1)
    return made


def by_expert(c: Array, experts: Ints, W: Array) -> Array:
    """y_c = x_c W_e + b_e, e the expert chosen:  x̄_c = ȳ_c W_e^T.  (..., c, o) -> (..., c, i)."""
    return ops.by_expert(c, np.broadcast_to(experts, c.shape[:-1]), W.swapaxes(-1, -2), None)


def weighted(c: Array, weights: Array, x: Array) -> tuple[Array, Array]:
    """y = Σ_c p_c x_c:  p̄_c = Σ_d ȳ x_c,  x̄_c = p_c ȳ.  (..., d) -> (..., c), (..., c, d)."""
    return np.matmul(x, c[..., None])[..., 0], weights[..., None] * c[..., None, :]


def multiplied(c: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """x · y, element by element:  x̄ = c y,  ȳ = c x."""
    return c * y, c * x
