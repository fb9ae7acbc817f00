"""How near to the reference a stage has to be, and beside what size."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from compute.types import DType
from oracle import forward, functions
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
    return {name: _size(name, exact, config) for name in exact}


def dtype_of(name: str, dtype: DType) -> str:
    """The dtype of a stage in a run of a dtype: chosen experts are whole numbers."""
    return "int64" if name.endswith("ffn.experts") else dtype


def ties(exact: Mapping[str, Array], allowed: float) -> list[str]:
    """The routers whose logits, off by what is allowed of their largest, may choose otherwise.

    The chosen experts and the best of the rest lie in a row; two of them closer together than
    twice what is allowed may change places, and then all that follows is another token's.
    """
    routers = [name for name in exact if name.endswith("ffn.router")]
    return [name for name in routers if _narrowest(name, exact) <= 2 * allowed]


def _narrowest(router: str, exact: Mapping[str, Array]) -> float:
    logits = exact[router]
    chosen = exact[router.replace("router", "experts")].shape[-1]
    largest = -np.sort(-logits, axis=-1)[..., : chosen + 1]
    return float(-np.diff(largest).max(initial=-np.inf) / np.abs(logits).max())


def shaken(
    config: Mapping[str, Any],
    weights: Mapping[str, Array],
    inputs: Mapping[str, Any],
    dtype: DType,
) -> dict[str, float]:
    """How far each stage of the reference moves when it is rounded otherwise.

    Weights and rows, and the terms of each norm, product and activation, are off by up to 16
    roundings of a dtype, at random. Where terms cancel, as where a stage is one number, where a
    norm subtracts a mean much larger than what is left, or in the tail of an activation, this is
    what the dtype can know of a stage.
    """
    exact = forward.trace(config, weights, **inputs)
    shake = _Shake(np.random.default_rng(0), 16 * float(np.finfo(dtype).epsneg))
    moved = dict.fromkeys(exact, 0.0)
    with _shaky_functions(shake):
        for _ in range(_SHAKES):
            rows = _shaken_rows(shake, inputs)
            other = forward.trace(config, {n: shake.off(v) for n, v in weights.items()}, **rows)
            for name, value in exact.items():
                finite = np.isfinite(value)
                apart = np.abs(other[name][finite] - value[finite])
                moved[name] = max(moved[name], float(apart.max(initial=0.0)))
    return moved


_SHAKES = 8


@dataclass(frozen=True, slots=True)
class _Shake:
    """Random roundings of a size."""

    rng: np.random.Generator
    size: float

    def of(self, terms: Array) -> Array:
        """How far sums of terms this large may be off."""
        return terms * self.size * self.rng.uniform(-1, 1, np.shape(terms))

    def off(self, values: Array) -> Array:
        """The values, rounded otherwise."""
        return values + self.of(values)


def _shaken_rows(shake: _Shake, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """An input with its rows rounded otherwise, those of its memory too."""
    made = {name: shake.off(v) if name == "tensor" else v for name, v in inputs.items()}
    if made.get("memory") is not None:
        made["memory"] = _shaken_rows(shake, made["memory"])
    return made


@contextmanager
def _shaky_functions(shake: _Shake) -> Iterator[None]:
    """The reference's functions, each result off by roundings of its largest term."""
    layer_norm, rms_norm = functions.layer_norm, functions.rms_norm
    project, activate = functions.project, functions.activate

    def shaky_layer_norm(x: Array, eps: float) -> Array:
        largest = np.full(x.shape, np.abs(x).max())
        return layer_norm(x, eps) + shake.of(largest / functions.layer_norm_scale(x, eps))

    def shaky_rms_norm(x: Array, eps: float) -> Array:
        return shake.off(rms_norm(x, eps))

    def shaky_project(x: Array, matrix: Array, bias: Array) -> Array:
        return project(x, matrix, bias) + shake.of(np.abs(x) @ np.abs(matrix) + np.abs(bias))

    def shaky_activate(name: str, x: Array) -> Array:
        return activate(name, x) + shake.of(x)  # of x (1 + erf(...))

    with (
        patch.object(functions, "activate", shaky_activate),
        patch.object(functions, "layer_norm", shaky_layer_norm),
        patch.object(functions, "rms_norm", shaky_rms_norm),
        patch.object(functions, "project", shaky_project),
    ):
        yield


def _size(name: str, exact: Mapping[str, Array], config: Mapping[str, Any]) -> float:
    if not name.endswith(".scores"):
        return 0.0
    part = name.removesuffix("scores")
    dots = exact[part + "dots"] if part + "dots" in exact else _dots(exact, part)
    return float(abs(_scale(name, config)) * np.abs(dots).max())


def _scale(name: str, config: Mapping[str, Any]) -> float:
    """The scale of the block that a stage belongs to."""
    stack = config["encoder"] if name.startswith("encoder.") else config
    layer = int(name.removeprefix("encoder.").split(".")[1])
    own = stack.get("layers") or [stack["attention"]] * stack["n_layers"]
    return float(own[layer]["scale"])


def _dots(exact: Mapping[str, Array], part: str) -> Array:
    """Q K^T of cross-attention, whose heads share keys in groups."""
    queries, keys = exact[part + "q"], exact[part + "k"]
    served = queries.shape[-3] // keys.shape[-3]
    return queries @ np.repeat(keys, served, axis=-3).swapaxes(-1, -2)


def _largest_score(exact: Mapping[str, Array]) -> float:
    scores = [value for name, value in exact.items() if name.endswith(".scores")]
    return max([np.abs(S[np.isfinite(S)]).max(initial=0.0) for S in scores], default=0.0)
