"""The Steps of norms, beside `compute.norms`."""

from collections.abc import Callable, Generator, Mapping
from functools import partial

import numpy as np

from compute import ops
from compute.block_weights import AttentionWeights, NormWeights
from compute.config import ModelConfig
from compute.derivatives import operations
from compute.derivatives.steps import Here, Step, Steps, Values
from compute.types import Array

Weights = Callable[[Here], NormWeights]
Norm = Callable[[str, str, Weights], Steps]
Centre = Callable[[Array], Array]


def _as_it_is(x: Array) -> Array:
    return x


def norm(centre: Centre, name: str, x: str, weights: Weights) -> Steps:
    """scale = sqrt(mean(x'²) + eps), normalized = x' / scale, out = normalized · gain + bias.

    x' is x, centred for a LayerNorm; centring is its own transpose.
    """
    scale, normalized, out = (f"{name}.{part}" for part in ("scale", "normalized", "out"))
    yield Step(scale, (x,), (normalized,), _scale)
    yield Step(normalized, (x, scale), (normalized, scale), partial(_normalized, centre))
    yield Step(out, (normalized,), (), partial(_gained, weights))
    return out


def no_norm(name: str, x: str, weights: Weights) -> Steps:
    """x itself: there is no such stage."""
    return x
    yield  # steps, though none


CENTRES: Mapping[str, Centre] = {"layernorm": ops.centre, "rmsnorm": _as_it_is}
"""By `norm.kind`: a LayerNorm's rows are centred first."""

NORMS: Mapping[str, Norm] = {
    **{kind: partial(norm, centre) for kind, centre in CENTRES.items()},
    "none": no_norm,
}
"""By `norm.kind`."""


def _scale(c: Array, values: Values, here: Here) -> tuple[Array, ...]:
    return (operations.rms_scale(c, values[0]),)


def _normalized(centre: Centre, c: Array, values: Values, here: Here) -> tuple[Array, ...]:
    x_bar, scale_bar = operations.divided(c, *values)
    return centre(x_bar), scale_bar


def _gained(weights: Weights, c: Array, values: Values, here: Here) -> tuple[Array, ...]:
    return (c * weights(here).gain,)


Gains = Callable[[AttentionWeights], NormWeights]
Pair = tuple[str, str]


def qk_norm(config: ModelConfig, projected: Pair) -> Generator[Step, None, Pair]:
    """q_norm = norm(Q), k_norm = norm(K), head by head or over all heads together; or neither."""
    pull = QK_NORMS.get(config.attention.qk_norm)
    if pull is None:
        return projected
    centre = CENTRES[config.norm.kind]
    yield Step("attn.q_norm", projected[:1], projected[:1], partial(pull, centre, _of_queries))
    yield Step("attn.k_norm", projected[1:], projected[1:], partial(pull, centre, _of_keys))
    return "attn.q_norm", "attn.k_norm"


def _of_queries(w: AttentionWeights) -> NormWeights:
    return w.q_norm


def _of_keys(w: AttentionWeights) -> NormWeights:
    return w.k_norm


def _by_head(
    centre: Centre, gains: Gains, c: Array, values: Values, here: Here
) -> tuple[Array, ...]:
    w = gains(here.block.attention)
    return (centre(operations.normalize(c, centre(values[0]), w.gain, w.eps)),)


def _over_heads(
    centre: Centre, gains: Gains, c: Array, values: Values, here: Here
) -> tuple[Array, ...]:
    w = gains(here.block.attention)
    flat, x = ops.across_heads(c), centre(ops.across_heads(values[0]))
    x_bar = centre(operations.normalize(flat, x, np.reshape(w.gain, -1), w.eps))
    return (ops.into_heads(x_bar, c.shape[-3]),)


QK_NORMS = {"head": _by_head, "full": _over_heads}
"""By `attention.qk_norm`."""
