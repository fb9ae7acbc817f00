"""How near to the reference a stage has to be, and beside what size."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from compute.types import DType
from oracle import forward
from oracle.functions import Array


def tolerance(dtype: DType, exact: Mapping[str, Array]) -> float:
    """float64: hundreds of roundings of 1.1e-16 each, over up to three blocks.

    float32: tens of roundings of 6e-8; and a score S that is rounded by eps |S| moves every
    weight that is made of it by as much, so large scores allow more.
    """
    if dtype == "float64":
        return 1e-12
    return max(2e-6, 8 * float(np.finfo(np.float32).eps) * _largest_score(exact))


def sizes(config: Mapping[str, Any], exact: Mapping[str, Array]) -> dict[str, float]:
    """What a stage is a sum of, where that may be larger than what a mask leaves of it."""
    scale = config["attention"].get("scale", 0.0)
    return {name: _size(name, exact, abs(scale)) for name in exact}


def shaken(
    config: Mapping[str, Any], weights: Mapping[str, Array], inputs: Mapping[str, Any]
) -> dict[str, float]:
    """How far each stage of the reference moves when its weights and rows are rounded otherwise.

    Each number is off by up to 16 roundings of float32, as the arithmetic's own roundings make
    it. Where the terms of a sum cancel, as where a stage is one number, this is what float32 can
    know of it.
    """
    exact = forward.trace(config, weights, **inputs)
    rng = np.random.default_rng(0)
    moved = dict.fromkeys(exact, 0.0)
    for _ in range(_SHAKES):
        rows = {name: _off(rng, v) if name == "tensor" else v for name, v in inputs.items()}
        other = forward.trace(config, {n: _off(rng, v) for n, v in weights.items()}, **rows)
        for name, value in exact.items():
            finite = np.isfinite(value)
            apart = np.abs(other[name][finite] - value[finite])
            moved[name] = max(moved[name], float(apart.max(initial=0.0)))
    return moved


_SHAKES = 8


def _off(rng: np.random.Generator, values: Array) -> Array:
    return values * (1 + 16 * 2.0**-24 * rng.uniform(-1, 1, values.shape))


def _size(name: str, exact: Mapping[str, Array], scale: float) -> float:
    if not name.endswith("attn.scores"):
        return 0.0
    dots = exact[name.replace("scores", "dots")]
    return float(scale * np.abs(dots).max())


def _largest_score(exact: Mapping[str, Array]) -> float:
    scores = [value for name, value in exact.items() if name.endswith("attn.scores")]
    return max([np.abs(S[np.isfinite(S)]).max(initial=0.0) for S in scores], default=0.0)
