"""What each field of a config moves: exact counts where it is one step larger, all else kept.

A step is the next value that the rules allow. elasticity = (Δy / y) / (Δx / x): by how many percent
a number grows where the field grows by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from compute.config import ModelConfig
from compute.sizing import architecture, parameters, steps
from compute.sizing.formats import CacheFormat
from compute.sizing.memory import kv_cache
from compute.sizing.operations import flops
from compute.sizing.quantity import Exact
from compute.sizing.vocabulary import Conventions, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A number before and after a step of a field from x to x + step."""

    before: Exact
    after: Exact
    x: int
    step: int

    @property
    def difference(self) -> Exact:
        """after - before."""
        return self.after - self.before

    @property
    def elasticity(self) -> float | None:
        """Percent of the number for each percent of the field; None where either is 0."""
        if not self.before or not self.x:
            return None
        grown = Fraction(self.difference) / Fraction(self.before)
        return float(grown / Fraction(self.step, self.x))


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field, its value and the next one, and what moves with it; None where nothing is cached."""

    name: str
    value: int
    after: int
    parameters: Move
    flops: Move
    kv_bytes_per_token: Move | None


@dataclass(frozen=True, slots=True)
class Counted:
    """What is counted of a config."""

    parameters: Exact
    flops: Exact
    kv_bytes_per_token: Exact | None


def of(
    config: ModelConfig, workload: Workload, cache: CacheFormat, conventions: Conventions
) -> tuple[Sequence[Field], dict[str, str]]:
    """Each field that can grow, those that move most parameters first; the others, and why not."""

    def counted(model: ModelConfig) -> Counted:
        caches = architecture.caches(model)
        return Counted(
            parameters.count(model),
            flops.forward(model, workload, conventions).total,
            kv_cache.size(model, workload, cache).per_token.value if caches else None,
        )

    before = counted(config)
    found = [_field(step, before, counted(step.config)) for step in steps.of(config)]
    ranked = sorted(found, key=lambda field: -abs(field.parameters.elasticity or 0.0))
    return ranked, dict(steps.fixed(config))


def _field(step: steps.Step, before: Counted, after: Counted) -> Field:
    def move(old: Exact, new: Exact) -> Move:
        return Move(before=old, after=new, x=step.value, step=step.after - step.value)

    old, new = before.kv_bytes_per_token, after.kv_bytes_per_token
    return Field(
        name=step.name,
        value=step.value,
        after=step.after,
        parameters=move(before.parameters, after.parameters),
        flops=move(before.flops, after.flops),
        kv_bytes_per_token=None if old is None or new is None else move(old, new),
    )
