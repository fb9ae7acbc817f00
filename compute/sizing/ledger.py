"""Parts that sum to a total: the form in which everything that is sized is told."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from compute.sizing.quantity import Exact, Quantity, q, whole
from compute.sizing.vocabulary import Kind, Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part: `count` alike (blocks of a stack, or 1), `each` of them, and the views, sums of
    some parts, that it is in. `letter`: what stands for the count in a formula."""

    id: str
    each: Quantity
    count: int = 1
    letter: str = "L"
    views: frozenset[str] = frozenset()

    @property
    def quantity(self) -> Quantity:
        """All of them: count · each."""
        return self.each if self.count == 1 else q(self.letter, self.count) * self.each

    @property
    def value(self) -> Exact:
        """The number of all of them."""
        return whole(self.count * self.each.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Parts and what they are counted in; the total is their sum, to the unit."""

    unit: Unit
    parts: Sequence[Part]
    kind: Kind = "exact"
    views: Sequence[str] = field(default=())

    @property
    def total(self) -> Exact:
        """The sum of the parts."""
        return self.sum_of(lambda part: True)

    def view(self, name: str) -> Exact:
        """The sum of the parts that are in a view."""
        return self.sum_of(lambda part: name in part.views)

    def sum_of(self, chosen: Callable[[Part], bool]) -> Exact:
        """The sum of the parts that are chosen."""
        return whole(sum(part.value for part in self.parts if chosen(part)))


def joined(parts: Iterable[Iterable[Part]]) -> tuple[Part, ...]:
    """Parts one after the other, those that hold nothing left out."""
    return tuple(part for group in parts for part in group if part.value)
