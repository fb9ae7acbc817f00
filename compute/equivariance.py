"""What permuting the rows of an input permutes, with and without positions and masks.

"Unmasked self-attention without positional information is permutation-equivariant: permute the
input rows and the output rows permute in the same way." A run reads X and then P X, where row i
of P X is row order[i] of X; each stage of the second run is compared with the same stage of the
first, permuted: f(P X) = P f(X). Positions and masks stay with their places; what belongs to a row
(its token type, its entry of key_mask, its row and column of attention_mask) moves with it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from compute import positions, selection, stages
from compute.config import ModelConfig
from compute.removing import Variant, variants
from compute.selection import Scene, Selection, Wanted
from compute.trace import Made, Run, trace
from compute.types import Array, DType, Inputs, Ints, Value
from compute.weights import ModelWeights

Rows = TypeVar("Rows", bound=npt.NDArray[Any])

TOLERANCE: Mapping[DType, float] = {"float64": 1e-12, "float32": 5e-4}
"""How far apart stages that permute may be, over the largest number of the stage.

Sums over keys are taken in another order, so their roundings differ: both are about 4,500 of a
dtype's roundings, which norms and large scores may add up to.
"""


_ENTERING = "blocks.0.resid_pre"
_DEFAULT = ("attn.pattern", "attn_out", "ffn_out", "resid_post", "logits")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compared:
    """f(P X) beside P f(X) for one stage.

    apart (n): by position, the largest difference over all else; None for a stage whose rows are
    not the input's (a memory's). inf where only one is finite. largest: the largest number of f(X).
    """

    name: str
    axes: tuple[str, ...]
    max_abs: float
    largest: float
    tolerance: float
    apart: Array | None

    @property
    def rel(self) -> float:
        """max_abs over the largest number of the stage."""
        return self.max_abs / self.largest if self.largest else self.max_abs

    @property
    def permutes(self) -> bool:
        """Whether the difference is within the tolerance."""
        return self.max_abs <= self.tolerance * self.largest

    @property
    def worst(self) -> int | None:
        """The position of P X whose row differs most; None where none does."""
        if self.apart is None or not self.max_abs:
            return None
        return int(self.apart.argmax())

    @property
    def failing(self) -> Ints:
        """The positions of P X whose rows differ by more than the tolerance."""
        apart = np.empty(0) if self.apart is None else self.apart
        return np.flatnonzero(apart > self.tolerance * self.largest)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The stages of a case, in order of computation."""

    variant: Variant
    stages: tuple[Compared, ...]

    @property
    def first(self) -> Compared | None:
        """The first stage that does not permute."""
        return next((stage for stage in self.stages if not stage.permutes), None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """Which rows of which input of which model are permuted, and the stages to compare."""

    config: ModelConfig
    weights: ModelWeights
    inputs: Inputs
    order: Ints
    wanted: tuple[Wanted, ...]
    check: Callable[[], None]


def rotated_by_one(positions: int) -> Ints:
    """1, 2, …, n - 1, 0: each row goes up one place, the first goes last.

    A reversal would do less: it keeps all distances, so that ALiBi would see nothing.
    """
    return np.roll(np.arange(positions, dtype=np.int64), -1)


def permuted(inputs: Inputs, order: Ints) -> Inputs:
    """P X: row i is row order[i], with what belongs to it; position ids and memory stay."""
    return replace(
        inputs,
        tensor=None if inputs.tensor is None else inputs.tensor[..., order, :],
        token_ids=_moved(inputs.token_ids, order),
        token_types=_moved(inputs.token_types, order),
        key_mask=_moved(inputs.key_mask, order),
        attention_mask=_moved(_moved(inputs.attention_mask, order, axis=-2), order),
    )


def _moved(values: Rows | None, order: Ints, axis: int = -1) -> Rows | None:
    return None if values is None else cast(Rows, np.take(values, order, axis=axis))


def outcomes(question: Question) -> Iterator[Outcome]:
    """Each case in turn; one that is an earlier one again is not run again."""
    found: dict[str, Outcome] = {}
    for variant in variants(question.config):
        name = variant.same_as or variant.case.name
        stages = found[name].stages if name in found else _compared(question, variant.config)
        outcome = found[variant.case.name] = Outcome(variant, stages)
        yield outcome


def _compared(question: Question, config: ModelConfig) -> tuple[Compared, ...]:
    """f(P X) beside P f(X), position ids as those of X in both."""
    fixed = replace(question.inputs, position_ids=positions.ids_for(question.inputs))
    before = _states(question, config, fixed)
    after = _states(question, config, permuted(fixed, question.order))
    tolerance = TOLERANCE[question.weights.dtype]
    found: list[Compared] = []
    for one, other in zip(before, after, strict=True):
        question.check()
        values = one.values, other.values
        found.append(compared(one.wanted, values, question.order, tolerance))
    return tuple(found)


def _states(question: Question, config: ModelConfig, inputs: Inputs) -> tuple[Made, ...]:
    """The stages wanted that this config has."""
    chosen = existing(question.wanted, selection.scene_for(config, inputs))
    run = Run(
        config=config,
        weights=question.weights,
        inputs=inputs,
        selection=chosen,
        check=question.check,
    )
    return trace(run).made


def default(scene: Scene) -> tuple[Wanted, ...]:
    """What enters the first block, each block's pattern and updates and what leaves it, logits."""
    return tuple(
        Wanted(name, stage, {}, False)
        for name, stage in stages.in_order(scene.config)
        if (stage.name in _DEFAULT and not stages.stack_of(name)) or name == _ENTERING
        if scene.absence(name) is None
    )


def existing(wanted: Sequence[Wanted], scene: Scene) -> Selection:
    """Those of the stages that a scene has: without positions nothing is rotated or added."""
    return Selection(tuple(x for x in wanted if scene.absence(x.name) is None), {})


def compared(
    wanted: Wanted, values: tuple[Value, Value], order: Ints, tolerance: float
) -> Compared:
    """A stage of f(X) and of f(P X): the first is permuted along each axis that counts rows."""
    before, after = values
    axes = stages.axes_of(wanted.stage, before.ndim > len(wanted.stage.axes))
    rows = () if stages.stack_of(wanted.name) else tuple(x for x in axes if x in "nm")
    gap = _gap(_permuted_along(before, [axes.index(x) for x in rows], order), after)
    finite = np.abs(before[np.isfinite(before)])
    return Compared(
        name=wanted.name,
        axes=axes,
        max_abs=float(gap.max(initial=0.0)),
        largest=float(finite.max(initial=0.0)),
        tolerance=tolerance,
        apart=_by_row(gap, axes.index(rows[0])) if rows else None,
    )


def _permuted_along(values: Value, axes: Sequence[int], order: Ints) -> Value:
    made = values
    for axis in axes:
        made = np.take(made, order, axis=axis)
    return made


def _gap(expected: Value, got: Value) -> Array:
    """|expected - got| in float64: 0 where both are the same infinity, inf where a number is
    missing on either side."""
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(expected.astype(np.float64) - got.astype(np.float64))
    gap[expected == got] = 0.0
    gap[np.isnan(gap)] = np.inf
    return gap


def _by_row(gap: Array, axis: int) -> Array:
    """The largest entry of each row along an axis: (n)."""
    return np.asarray(gap.max(axis=tuple(x for x in range(gap.ndim) if x != axis)))
