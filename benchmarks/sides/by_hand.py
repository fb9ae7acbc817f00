"""The small model as somebody would write it by hand in NumPy: one function, one dictionary.

Everything a careful hand does: float32 throughout, Q K V as one product, results reused in place
where they are not kept. What it leaves out is what the product adds: names that are checked,
selection, patches, frozen results.
"""

from collections.abc import Callable, Mapping
from math import sqrt

import numpy as np

from benchmarks.sides import kept, ours
from benchmarks.sides.rows import rows
from compute.types import Array

_LOW = float(np.finfo(np.float32).min)


def small() -> Callable[[], dict[str, Array]]:
    """The small model on its rows."""
    w = packed()
    x = rows(kept.SMALL_POSITIONS, kept.SMALL.d)
    return lambda: block(x, w, kept.SMALL.heads)


def packed() -> Mapping[str, Array]:
    """Block 0's weights of the small model, as the products want them."""
    named = ours.tensors_of(ours.stack(1, kept.SMALL))
    w = {name.removeprefix("blocks.0."): value for name, value in named.items()}
    sides = [
        w[f"attn.W_{name}"].swapaxes(0, 1).reshape(len(w["norm1.weight"]), -1) for name in "QKV"
    ]
    return {
        **w,
        "W_QKV": np.ascontiguousarray(np.concatenate(sides, axis=1)),
        "b_QKV": np.concatenate([w[f"attn.b_{name}"].ravel() for name in "QKV"]),
        "W_O": w["attn.W_O"].reshape(-1, w["attn.W_O"].shape[-1]),
    }


def block(X: Array, w: Mapping[str, Array], heads: int, low: float = -np.inf) -> dict[str, Array]:
    """Every listed stage of a pre-norm block: (n, d) -> name: array. `low`: a masked score."""
    n, d = X.shape
    k = d // heads
    norm1 = _layer_norm(X, w["norm1.weight"], w["norm1.bias"])
    qkv = norm1 @ w["W_QKV"]
    qkv += w["b_QKV"]
    q, key, v = qkv.reshape(n, 3, heads, k).transpose(1, 2, 0, 3)
    scores = (q * np.float32(1 / sqrt(k))) @ key.swapaxes(-1, -2)
    scores[:, np.triu(np.ones((n, n), np.bool_), 1)] = low
    pattern = np.exp(scores - scores.max(axis=-1, keepdims=True))
    pattern /= pattern.sum(axis=-1, keepdims=True)
    z = pattern @ v
    attn_out = z.swapaxes(0, 1).reshape(n, d) @ w["W_O"]
    attn_out += w["attn.b_O"]
    resid_mid = X + attn_out
    norm2 = _layer_norm(resid_mid, w["norm2.weight"], w["norm2.bias"])
    up = norm2 @ w["ffn.W_in"]
    up += w["ffn.b_in"]
    hidden = _gelu(up)
    ffn_out = hidden @ w["ffn.W_out"]
    ffn_out += w["ffn.b_out"]
    made = (norm1, q, key, v, scores, pattern, z, attn_out, resid_mid, norm2, up, hidden, ffn_out)
    return dict(zip(kept.names(1), (*made, resid_mid + ffn_out), strict=True))


def _layer_norm(x: Array, gain: Array, bias: Array) -> Array:
    centred: Array = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    centred *= gain / np.sqrt(variance + np.float32(1e-5))
    centred += bias
    return centred


def _gelu(x: Array) -> Array:
    inner: Array = x * x
    inner *= np.float32(0.044715)
    inner += np.float32(1)
    inner *= x
    inner *= np.float32(sqrt(2 / np.pi))
    np.tanh(inner, out=inner)
    inner += np.float32(1)
    inner *= x
    inner *= np.float32(0.5)
    return inner


def printable(X: Array, w: Mapping[str, Array], heads: int) -> dict[str, Array]:
    """The same with a finite number for a masked score, since JSON has no infinity."""
    return block(X, w, heads, _LOW)
