"""A sweep: one change of one stage at each cell of a grid, and what a measure becomes.

    value(cell) = measure of the base run with the stage's slice of the cell changed

Patched from another run these are the tables of activation patching: Meng et al. 2022,
arXiv:2202.05262, section 2; Wang et al. 2022, arXiv:2211.00593, section 3. The base run is run
once and leaves the stream at each block: a cell goes on from the block it changes, and stops once
its measure is there. Each value has the bits of a whole run with the same change.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from compute import driver, interventions
from compute.interventions import effects
from compute.model import model, resumed
from compute.sweep import plans
from compute.sweep.grids import Cell
from compute.sweep.plans import BELOW, Plan
from compute.types import Array, Equations, Inputs, Value
from compute.weights import ModelWeights

Kept = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Swept:
    """The measure of each cell, in the grid's shape, in float64; of the base run; of the donor."""

    values: Array
    base: float
    donor: float | None


def run(
    planned: Plan,
    weights: ModelWeights,
    inputs: Inputs,
    donor: Inputs | None,
    check: Callable[[], None],
) -> Swept:
    """The base run, the donor's, and a run from its block on for each cell, in row order."""
    whole = driver.checked(model(planned.scene.config, weights, inputs), check)
    base = dict(driver.stream(whole, planned.of_base))
    donors = {} if donor is None else {0: _donor_run(planned, weights, donor, check)}
    bench = _Bench(planned, weights, inputs, base, donors, check)
    found = (bench.value(cell) for cell in planned.grid.cells())
    of_donor = planned.measure.of(donors[0][planned.measure.stage]) if donors else None
    values = np.fromiter(found, np.float64, planned.grid.size)
    of_base = planned.measure.of(base[planned.measure.stage])
    return Swept(values.reshape(planned.grid.shape), of_base, of_donor)


def _donor_run(
    planned: Plan, weights: ModelWeights, donor: Inputs, check: Callable[[], None]
) -> Kept:
    equations = driver.checked(model(planned.scene.config, weights, donor), check)
    return dict(driver.stream(equations, planned.of_donor))


@dataclass(frozen=True, slots=True)
class _Bench:
    """What all cells share: the base run's stages and the donor's."""

    planned: Plan
    weights: ModelWeights
    inputs: Inputs
    base: Kept
    donors: Mapping[int, Kept]
    check: Callable[[], None]

    def value(self, cell: Cell) -> float:
        """The measure with a cell changed; the base run's where nothing changes before it."""
        self.check()
        planned = self.planned
        reached = [name for name in cell.names if name in planned.reached]
        if not reached:
            return planned.measure.of(self.base[planned.measure.stage])
        equations = self._from(min(planned.reached[name] for name in reached))
        kept = {planned.measure.stage}
        ((_, values),) = driver.stream(
            driver.checked(equations, self.check), kept, self._patches(cell, reached)
        )
        return planned.measure.of(values)

    def _patches(self, cell: Cell, reached: Sequence[str]) -> Mapping[str, driver.Patch]:
        changes = [self.planned.changes[name] for name in reached]
        made = [replace(x, where={**x.where, **cell.where}) for x in changes]
        patches = interventions.patches(made, self.donors)
        later = self.planned.frozen.get(tuple(reached), ())
        return {**effects.frozen(later, self.base), **patches}

    def _from(self, at: int) -> Equations:
        """The equations from a depth on."""
        config = self.planned.scene.config
        if at <= BELOW:
            return model(config, self.weights, self.inputs)
        X = self.base[plans.start(at, config)]
        return resumed(config, self.weights, self.inputs, at, X, self._memory())

    def _memory(self) -> Array:
        """What cross-attention reads: the encoder's rows, the posted ones, or nothing."""
        memory, dtype = self.inputs.memory, self.weights.dtype
        encoded = plans.encoded_stage(self.planned.scene.config)
        if encoded:
            return self.base[encoded]
        return np.empty(0, dtype) if memory is None else np.array(memory.tensor, dtype)
