"""A difference between two counts of one model, as signed parts with the formulas of each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from compute.sizing.holdings import Holding
from compute.sizing.quantity import Quantity, number, q


@dataclass(frozen=True, slots=True)
class Change:
    """What one part gains or, below 0, loses."""

    id: str
    quantity: Quantity

    @property
    def value(self) -> int:
        """Numbers gained."""
        return int(self.quantity.value)

    @property
    def formula(self) -> str:
        """In letters, a part that is lost with a minus before it: `-V·d`."""
        return _signed(self.quantity.formula)

    @property
    def substituted(self) -> str:
        """The formula with the numbers in it."""
        return _signed(self.quantity.substituted)


def _signed(said: str) -> str:
    return "-" + said.removeprefix("0 - ") if said.startswith("0 - ") else said


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One way to count otherwise.

    Of a `group` at most one holds, two that change the same part never hold together, and one that
    stands `alone` holds with no other: so differences add up. `copied`: parts that it is a copy
    of, and counts as changed. `needs`: a group that has to be there for this one to make sense.
    """

    id: str
    group: str
    words: str
    changes: tuple[Change, ...]
    needs: str = ""
    copied: frozenset[str] = frozenset()
    alone: bool = False

    @property
    def value(self) -> int:
        """Numbers gained, all parts together."""
        return sum(change.value for change in self.changes)

    @property
    def touches(self) -> frozenset[str]:
        """The parts that it changes or copies."""
        return self.copied.union(change.id for change in self.changes)

    def goes_with(self, other: "Difference") -> bool:
        """Whether both may hold."""
        if self.alone or other.alone or self.group == other.group:
            return False
        return self.touches.isdisjoint(other.touches)


def whole(held: Holding) -> Quantity:
    """All of a kind of tensor: count · size."""
    return held.size if held.letter == "1" else q(held.letter, held.count) * held.size


def less(quantity: Quantity) -> Quantity:
    """A quantity taken away."""
    return number(0) - quantity


def removed(listed: Iterable[Holding]) -> tuple[Change, ...]:
    """Parts that are left out."""
    return tuple(Change(held.id, less(whole(held))) for held in listed if held.parameters)


def relettered(size: Quantity, others: Mapping[str, Quantity]) -> Quantity:
    """A product with some letters replaced, and its value worked out again."""
    if size.step == "letter":
        return others.get(size.letter, size)
    if size.step == "number":
        return size
    if size.step == "^":
        base, power = size.operands
        return relettered(base, others) ** int(power.value)
    assert size.step == "*", size.formula  # noqa: S101 - tensors have axes
    return prod((relettered(x, others) for x in size.operands), start=number(1))


def letters_of(made: Quantity) -> dict[str, int]:
    """The letters of a formula, and their numbers."""
    if made.step == "letter":
        return {made.letter: int(made.value)}
    found: dict[str, int] = {}
    for operand in made.operands:
        found |= letters_of(operand)
    return found
