"""What a run shows at chosen rows: each stage cut to them as soon as it is there."""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import numpy as np

from compute import driver, masks, stages
from compute.config import ModelConfig
from compute.model import model
from compute.types import Array, Bools, Inputs, Ints, Value
from compute.weights import ModelWeights, StackWeights

KEPT_WHOLE = ("attn.v", "cross.v")
"""What every receiving position reads: not cut to rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows asked about: positions (R), and their rows of the batch (R) where there is one."""

    positions: Ints
    batch: Ints | None

    def of(self, values: Value, axes: tuple[str, ...]) -> Value:
        """Only these rows, first: (..., n, ...) -> (R, ...), a copy."""
        at = axes.index("n")
        if self.batch is None:
            return np.array(np.moveaxis(values, at, 0)[self.positions])
        return np.array(np.moveaxis(values, at + 1, 1)[self.batch, self.positions])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen:
    """The stages of a run at R rows, (R, ...); values whole, (g, m, v) or (b, g, m, v).

    masked: pattern's full name -> which rows (R) had no key to attend to.
    """

    config: ModelConfig
    weights: ModelWeights
    inputs: Inputs
    rows: Rows
    stages: Mapping[str, Value]
    masked: Mapping[str, Bools]
    check: Callable[[], None]

    def __getitem__(self, name: str) -> Array:
        """A stage at the rows, in float64."""
        return self.stages[name].astype(np.float64)

    def stack(self, prefix: str) -> StackWeights:
        """The weights of the stack that a full name or prefix is of."""
        stack = self.weights.encoder if stages.stack_of(prefix) else self.weights
        assert stack is not None  # noqa: S101 - a stage of it was found
        return stack

    def slabs(self, most: int) -> Iterator["Seen"]:
        """The same, of at most `most` rows at a time, all of one row of the batch."""
        for batch in self._batches():
            for start in range(0, len(batch), most):
                self.check()
                yield self._only(batch[start : start + most])

    def _batches(self) -> list[Ints]:
        if self.rows.batch is None:
            return [np.arange(len(self.rows.positions))]
        every = self.rows.batch
        return [np.flatnonzero(every == row) for row in dict.fromkeys(every.tolist())]

    def _only(self, some: Ints) -> "Seen":
        batch = None if self.rows.batch is None else self.rows.batch[some]
        cut = {name: self._cut(name, values, some) for name, values in self.stages.items()}
        masked = {name: rows[some] for name, rows in self.masked.items()}
        rows = Rows(self.rows.positions[some], batch)
        return replace(self, rows=rows, stages=cut, masked=masked)

    def _cut(self, name: str, values: Value, some: Ints) -> Value:
        if stages.local_name(name) not in KEPT_WHOLE:
            return values[some]
        return values if self.rows.batch is None else values[int(self.rows.batch[some[0]])]


def look(
    config: ModelConfig,
    weights: ModelWeights,
    inputs: Inputs,
    rows: Rows,
    needed: AbstractSet[str],
    check: Callable[[], None],
) -> Seen:
    """Run the model; of each stage needed keep the rows, and let go of the rest at once."""
    equations = driver.checked(model(config, weights, inputs), check)
    kept = {name: _kept(name, values, rows) for name, values in driver.stream(equations, needed)}
    without = masks.without_keys(config, inputs)
    return Seen(
        config=config,
        weights=weights,
        inputs=inputs,
        rows=rows,
        stages=kept,
        masked={
            name: _at(masked, rows) for name, masked in without.items() if _beside(name, needed)
        },
        check=check,
    )


def _kept(name: str, values: Value, rows: Rows) -> Value:
    if stages.local_name(name) in KEPT_WHOLE:
        return np.array(values)  # a view would hold the product of all three
    return rows.of(values, stages.find(name).axes)


def _beside(pattern: str, needed: AbstractSet[str]) -> bool:
    """Whether a pattern is of the stack that is looked at: its positions are the rows'."""
    return any(stages.stack_of(name) == stages.stack_of(pattern) for name in needed)


def _at(masked: Bools, rows: Rows) -> Bools:
    """(n) or (b, 1, n) -> (R)."""
    if masked.ndim == 1:
        return masked[rows.positions]
    batch = np.zeros_like(rows.positions) if rows.batch is None else rows.batch
    return masked[batch if len(masked) > 1 else 0, 0, rows.positions]
