"""Two models part by part, and each field in which their configs differ with what it moves.

The fields are changed one after the other, in the config's order, from the first model to the
second. So what they move sums to the difference of the two, to the unit; what one field moves
depends on those that were changed before it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from typing import TypeVar

from compute.config import ModelConfig
from compute.sizing.ledger import Ledger
from compute.sizing.quantity import Exact, whole

T = TypeVar("T")

Path = tuple[str, ...]
Sizes = Callable[[ModelConfig], Mapping[str, Ledger]]
"""A config -> its ledgers by name: what is compared."""


@dataclass(frozen=True, slots=True)
class Line:
    """A part, or the total, of the first and of the second; 0 where there is none of it."""

    id: str
    first: Exact
    second: Exact

    @property
    def difference(self) -> Exact:
        """second - first."""
        return whole(self.second - self.first)

    @property
    def ratio(self) -> float | None:
        """second / first; None where the first is 0."""
        return float(Fraction(self.second) / Fraction(self.first)) if self.first else None


@dataclass(frozen=True, slots=True)
class Moved:
    """What a field moves of a total: by how much, and which parts of it."""

    difference: Exact
    parts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Change:
    """A field of the config, dotted; what it was and what it becomes; what it moves, by ledger."""

    field: str
    before: object
    after: object
    moves: Mapping[str, Moved]


WEIGHTLESS = frozenset(
    (
        *("scale", "softcap", "eps", "gain_offset", "activation", "renormalize"),
        *("theta", "rotary_dim", "pairing", "scaling", "alibi_rule", "max_distance"),
        *("bidirectional", "residual_multiplier", "embed_multiplier"),
        *("logit_multiplier", "logit_softcap"),
    )
)
"""Fields that change what is computed and neither how much of it nor what it is computed with."""


def lines(first: Ledger, second: Ledger) -> tuple[Line, ...]:
    """Every part of either, in the first one's order, then what the second alone has."""
    values = [{part.id: part.value for part in ledger.parts} for ledger in (first, second)]
    return tuple(
        Line(name, values[0].get(name, 0), values[1].get(name, 0))
        for name in dict.fromkeys((*values[0], *values[1]))
    )


def total(first: Ledger, second: Ledger) -> Line:
    """Both totals."""
    return Line("total", first.total, second.total)


def changes(first: ModelConfig, second: ModelConfig, sizes: Sizes) -> Iterator[Change]:
    """The fields that differ, and what each moves with those before it changed already."""
    config, before = first, sizes(first)
    for path, old, new in differing(first, second):
        config = _with(config, path, new)
        after = before if path[-1] in WEIGHTLESS else sizes(config)
        moves = {name: _moved(before[name], after[name]) for name in after}
        name = ".".join(part.rstrip("_") for part in path)
        yield Change(name, old, new, moves)
        before = after


def _moved(before: Ledger, after: Ledger) -> Moved:
    parts = [line.id for line in lines(before, after) if line.first != line.second]
    return Moved(whole(after.total - before.total), parts)


def differing(first: object, second: object) -> Iterator[tuple[Path, object, object]]:
    """(path, first's value, second's) of each field that differs.

    A part whose kind differs, or that only one of the two has, is one field.
    """
    for field in fields(first):  # type: ignore[arg-type]
        old, new = getattr(first, field.name), getattr(second, field.name)
        if old == new:
            continue
        if _is_alike(old, new):
            for path, inner_old, inner_new in differing(old, new):
                yield (field.name, *path), inner_old, inner_new
        else:
            yield (field.name,), old, new


def _is_alike(old: object, new: object) -> bool:
    both = is_dataclass(old) and is_dataclass(new)
    return both and getattr(old, "kind", None) == getattr(new, "kind", None)


def _with(part: T, path: Path, value: object) -> T:
    """A config with another value at a path."""
    name, *rest = path
    inner = _with(getattr(part, name), tuple(rest), value) if rest else value
    return replace(part, **{name: inner})  # type: ignore[type-var]
