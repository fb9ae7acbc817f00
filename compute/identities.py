"""The identities that tie a trace's states together, each checked by another route.

Everything is summed again in float64 from the stages that were kept. An identity holds where

    max |left - right| <= eps · ((8 + sqrt(width) + spread) · scale + width / 4 · max |right|)

with eps that of the dtype (and beside it `width` of its smallest numbers, where all underflows),
`width` the number of terms of a sum, `scale` the size of the terms (for a product, the largest
row norm times the largest column norm, so cancellation raises no alarm), and `spread` the
largest finite |score| where the route goes through the exponential, else 0. The root is for
roundings that go either way, `width / 4` for sums of like terms, whose roundings go one way. At
widths up to a few hundred a stage disturbed by a thousandth breaks the identities that name it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from compute import _identity_routes as routes
from compute import stages
from compute._identity_measures import Measured, Operands
from compute.block_weights import BlockWeights
from compute.config import ModelConfig
from compute.types import Array, Bools
from compute.weights import ModelWeights


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One identity: `holds` is None, with the reason, where it could not be checked.

    max_abs: largest |left - right|; rel: that over the largest |right|; norm_ratio:
    ‖left‖ / ‖right‖. Each is None where it is 0/0 or was not measured.
    """

    name: str
    formula: str
    max_abs: float | None
    rel: float | None
    norm_ratio: float | None
    holds: bool | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What there is to check with: whole arrays by full name, why others are missing, weights.

    absence: full name -> why the config has no such stage. fully_masked: pattern's full name ->
    its queries without a key. `check` is called now and then and may raise to stop the work.
    """

    config: ModelConfig
    absence: Callable[[str], str | None]
    whole: Mapping[str, Array]
    sliced: frozenset[str]
    patched: frozenset[str]
    weights: ModelWeights
    fully_masked: Mapping[str, Bools]
    check: Callable[[], None]


def check(evidence: Evidence) -> Iterator[Identity]:
    """Every identity of the config, in order of computation, each made when it is asked for."""
    config = evidence.config
    if config.encoder is not None:
        yield from _of_stack(stages.ENCODER, config.encoder, evidence)
    yield from _of_stack("", config, evidence)


def _of_stack(stack: str, config: ModelConfig, evidence: Evidence) -> Iterator[Identity]:
    yield _one(stack, routes.embedding(config), evidence)
    for layer in range(config.n_layers):
        for route in routes.in_block(config):
            yield _one(f"{stack}blocks.{layer}.", route, evidence)
    yield _one(stack, routes.expansion(config), evidence)


def _one(prefix: str, route: routes.Route, evidence: Evidence) -> Identity:
    name = prefix + route.name
    needed = [prefix + stage for stage in (*route.stages, *route.sized_by)]
    through = [prefix + stage for stage in route.through]
    reason = route.absent or _missing(needed, through, evidence)
    if reason is not None:
        return _unchecked(name, route.formula, reason)
    operands = Operands(
        tuple(evidence.whole[stage] for stage in needed),
        _block_of(prefix, evidence.weights),
        evidence.fully_masked.get(needed[0]),
        evidence.check,
    )
    if not all(_finite(stage, evidence.whole[stage]) for stage in needed):
        return _unchecked(name, route.formula, "a stage is not finite")
    with np.errstate(over="ignore", invalid="ignore"):  # squares of huge numbers: said below
        measured = route.measure(operands)
    if not np.isfinite(measured.scale):
        return _unchecked(name, route.formula, "the terms are too large to be squared")
    return _judged(name, route.formula, measured, operands.values[0].dtype)


def _block_of(prefix: str, weights: ModelWeights) -> BlockWeights | None:
    """The block an identity is of; None where it is of a whole stack."""
    layer = stages.layer_of(prefix + "x")
    stack = weights.encoder if stages.stack_of(prefix) else weights
    return None if layer is None or stack is None else stack.blocks[layer]


def _missing(needed: list[str], through: list[str], evidence: Evidence) -> str | None:
    for name in needed:
        absent = evidence.absence(name)
        if absent is not None:
            return f"not applicable: {absent}"
    touched = dict.fromkeys([*needed, *through])
    changed = [name for name in touched if name in evidence.patched]
    if changed:
        return f"patched: {', '.join(changed[:3])}"
    lacking = [name for name in needed if name not in evidence.whole]
    if not lacking:
        return None
    cut = [name for name in lacking if name in evidence.sliced]
    return f"sliced: {', '.join(cut[:3])}" if cut else f"not kept: {', '.join(lacking[:3])}"


def _finite(name: str, values: Array) -> bool:
    if stages.local_name(name) in (
        "attn.scores",
        "cross.scores",
    ):  # masked pairs are -inf by design
        return not (np.isnan(values).any() or np.isposinf(values).any())
    return bool(np.isfinite(values).all())


def _unchecked(name: str, formula: str, reason: str) -> Identity:
    return Identity(
        name=name,
        formula=formula,
        max_abs=None,
        rel=None,
        norm_ratio=None,
        holds=None,
        reason=reason,
    )


def _judged(name: str, formula: str, measured: Measured, dtype: np.dtype[np.floating]) -> Identity:
    right = measured.right_norm
    return Identity(
        name=name,
        formula=formula,
        max_abs=measured.max_abs,
        rel=measured.max_abs / measured.right_max if measured.right_max else None,
        norm_ratio=measured.left_norm / right if right else None,
        holds=measured.max_abs <= tolerance(dtype, measured),
        reason=None,
    )


def tolerance(dtype: np.dtype[np.floating], measured: Measured) -> float:
    """How far left and right may be apart: the formula stands above."""
    info, width = np.finfo(dtype), float(measured.width)
    terms = (8.0 + width**0.5 + measured.spread) * measured.scale
    likely = float(info.eps) * (terms + width / 4.0 * measured.right_max)
    return likely + width * float(info.smallest_subnormal)
