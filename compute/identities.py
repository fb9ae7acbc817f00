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

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass

import numpy as np

from compute import _identity_measures as measures
from compute import _identity_routes as routes
from compute import _identity_sums as sums
from compute import stages
from compute._identity_measures import Measured, Operands
from compute.block_weights import BlockWeights
from compute.config import ModelConfig
from compute.types import Array, Bools
from compute.weights import ModelWeights

_NOT_FINITE = "a stage is not finite"


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
    for prefix, route in _every(evidence.config):
        yield _one(prefix, route, evidence)


class Checks:
    """The same identities, of a run whose stages come one by one and are let go.

    Those of a block are checked when all of it has come, those of a stack are summed up on the
    way. `evidence.whole` has what is there at the moment; kept: full names of all that comes whole.
    """

    def __init__(self, evidence: Evidence, kept: Set[str]) -> None:
        self._evidence = evidence
        self._found: dict[str, Identity] = {}
        self._running: list[_Running] = []
        for prefix, route in _every(evidence.config):
            reason = _why_not(prefix, route, evidence, kept)
            if reason is not None:
                self._add(_unchecked(prefix + route.name, route.formula, reason))
            elif stages.layer_of(prefix) is None:
                self._running.append(_Running(prefix, route, evidence.check))

    def take(self, name: str, values: Array) -> None:
        """A stage that has come, whole."""
        for running in self._running:
            identity = running.take(name, values)
            if identity is not None:
                self._add(identity)

    def close(self, prefix: str) -> None:
        """Check a block (`blocks.3.`) whose stages are all there."""
        config = self._evidence.config
        own = (config.encoder if stages.stack_of(prefix) else None) or config
        for route in routes.in_block(own):
            if prefix + route.name not in self._found:
                self._add(_one(prefix, route, self._evidence))

    def all(self) -> list[Identity]:
        """Every identity, once all stages have come; in order of computation."""
        every = _every(self._evidence.config)
        return [self._found[prefix + route.name] for prefix, route in every]

    def _add(self, identity: Identity) -> None:
        self._found[identity.name] = identity


class _Running:
    """An addition whose terms come one by one, each let go once it is added."""

    def __init__(self, prefix: str, route: routes.Route, check: Callable[[], None]) -> None:
        self._name, self._formula = prefix + route.name, route.formula
        *self._terms, self._total = _needed(prefix, route)
        self._width = len(self._terms)
        self._check = check
        self._early: dict[str, Array] = {}
        self._sum = sums.Sum()
        self._finite = True

    def take(self, name: str, values: Array) -> Identity | None:
        """Add a stage that is a term; with the total, which comes last, the identity."""
        if name in self._terms:
            self._early[name] = values
            self._add()
        return self._judged(values) if name == self._total else None

    def _add(self) -> None:
        """Add what has come up to the first term that has not: their order decides the bits."""
        while self._terms and self._terms[0] in self._early:
            name = self._terms.pop(0)
            term = self._early.pop(name)
            self._finite = self._finite and _finite(name, term)
            with np.errstate(over="ignore", invalid="ignore"):
                self._sum.add(term)

    def _judged(self, total: Array) -> Identity:
        if not (self._finite and _finite(self._total, total)):
            return _unchecked(self._name, self._formula, _NOT_FINITE)
        blocks = measures.row_blocks(total, self._check)
        with np.errstate(over="ignore", invalid="ignore"):
            measured = sums.against(total, blocks, self._sum.rows, self._width)
        return _judged(self._name, self._formula, measured, total.dtype)


def _every(config: ModelConfig) -> Iterator[tuple[str, routes.Route]]:
    """(what the names of its stages begin with, identity): of the encoder, then of the stack."""
    if config.encoder is not None:
        yield from _of_stack(stages.ENCODER, config.encoder)
    yield from _of_stack("", config)


def _of_stack(stack: str, config: ModelConfig) -> Iterator[tuple[str, routes.Route]]:
    yield stack, routes.embedding(config)
    for layer in range(config.n_layers):
        for route in routes.in_block(config):
            yield f"{stack}blocks.{layer}.", route
    yield stack, routes.expansion(config)


def _one(prefix: str, route: routes.Route, evidence: Evidence) -> Identity:
    name, needed = prefix + route.name, _needed(prefix, route)
    reason = _why_not(prefix, route, evidence, evidence.whole.keys())
    if reason is not None:
        return _unchecked(name, route.formula, reason)
    operands = Operands(
        tuple(evidence.whole[stage] for stage in needed),
        _block_of(prefix, evidence.weights),
        evidence.fully_masked.get(needed[0]),
        evidence.check,
    )
    if not all(_finite(stage, evidence.whole[stage]) for stage in needed):
        return _unchecked(name, route.formula, _NOT_FINITE)
    with np.errstate(over="ignore", invalid="ignore"):  # squares of huge numbers: said below
        measured = route.measure(operands)
    return _judged(name, route.formula, measured, operands.values[0].dtype)


def _needed(prefix: str, route: routes.Route) -> list[str]:
    return [prefix + stage for stage in (*route.stages, *route.sized_by)]


def _block_of(prefix: str, weights: ModelWeights) -> BlockWeights | None:
    """The block an identity is of; None where it is of a whole stack."""
    layer = stages.layer_of(prefix + "x")
    stack = weights.encoder if stages.stack_of(prefix) else weights
    return None if layer is None or stack is None else stack.blocks[layer]


def _why_not(prefix: str, route: routes.Route, evidence: Evidence, there: Set[str]) -> str | None:
    """Why an identity cannot be checked with the stages that are there, or None."""
    if route.absent is not None:
        return route.absent
    needed = _needed(prefix, route)
    for name in needed:
        absent = evidence.absence(name)
        if absent is not None:
            return f"not applicable: {absent}"
    touched = dict.fromkeys([*needed, *(prefix + stage for stage in route.through)])
    changed = [name for name in touched if name in evidence.patched]
    if changed:
        return f"patched: {', '.join(changed[:3])}"
    lacking = [name for name in needed if name not in there]
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
    if not np.isfinite(measured.scale):
        return _unchecked(name, formula, "the terms are too large to be squared")
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
