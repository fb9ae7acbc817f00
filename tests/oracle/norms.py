"""Norms of rows, each row across its own numbers. Literal, float64."""

import numpy as np

from oracle import functions
from oracle.functions import Array, Config, Stages, Weights


def norm(name: str, kind: Config, w: Weights, x: Array) -> Stages:
    """A norm's three stages; none where there is no norm."""
    if kind["kind"] == "none":
        return {}
    scale = np.array([[scale_of(kind, row)] for row in x])
    normalized = np.array([normalize(kind, row) for row in x])
    out = np.array([with_gain(kind, name, w, row) for row in normalized])
    return {f"{name}.scale": scale, f"{name}.normalized": normalized, f"{name}.out": out}


def scale_of(kind: Config, x: Array) -> float:
    """What a row is divided by; (d,) -> one number."""
    if kind["kind"] == "layernorm":
        return functions.layer_norm_scale(x, kind["eps"])
    return functions.rms_norm_scale(x, kind["eps"])


def normalize(kind: Config, x: Array) -> Array:
    """A row before gain and bias; (d,) -> (d,)."""
    if kind["kind"] == "layernorm":
        return functions.layer_norm(x, kind["eps"])
    return functions.rms_norm(x, kind["eps"])


def with_gain(kind: Config, name: str, w: Weights, normalized: Array) -> Array:
    """(gain_offset + weight) x + bias, a LayerNorm's bias where it exists; (d,) -> (d,)."""
    gain = kind["gain_offset"] + w[f"{name}.weight"].reshape(-1)
    if kind["kind"] == "layernorm" and kind.get("bias", True):
        return np.asarray(normalized * gain + w[f"{name}.bias"].reshape(-1))
    return np.asarray(normalized * gain)


def of_heads(over: str, kind: Config, name: str, w: Weights, x: Array) -> Array:
    """Queries or keys, normalized: each head alone, or a token's heads together; (h, n, k)."""
    if over == "head":
        return np.array(
            [[with_gain(kind, name, w, normalize(kind, row)) for row in head] for head in x]
        )
    h, n, k = x.shape
    out = np.zeros((h, n, k))
    for i in range(n):
        together = np.concatenate([x[r, i] for r in range(h)])
        whole = with_gain(kind, name, w, normalize(kind, together))
        for r in range(h):
            out[r, i] = whole[r * k : (r + 1) * k]
    return out
