"""A published count of parameters from the exact one: by no difference, one, or up to three.

Every sum of up to three differences that go together is worked out; those that give the published
number come first, the fewest differences first, then the most usual; then the nearest, where
each difference at least halves what is left.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compute.config import ModelConfig
from compute.sizing import parameters
from compute.sizing.reconciling import explanations, other_numbers
from compute.sizing.reconciling.differences import Difference

MOST = 10**18
"""Counts up to here are looked at: sums of three differences stay within 64 bits."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Published:
    """A published count, and between which counts it would be written like that."""

    value: int
    lowest: int
    highest: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """Differences that hold together, the count that they make of the exact one, and whether the
    published count is that."""

    differences: tuple[Difference, ...]
    number: int
    remaining: int
    exact: bool


def explain(config: ModelConfig, published: Published, best: int) -> list[Explanation]:
    """The best explanations of a published count, best first, at most so many.

    The last is the exact count itself, where it comes so far: nothing farther is told.
    """
    ours = parameters.count(config)
    listed = [x for x in explanations.differences(config) if abs(x.value) <= MOST]
    listed += other_numbers.solved(config, published.lowest, published.highest)
    chosen: list[frozenset[int]] = []
    found: list[Explanation] = []
    for row in _ordered(listed, ours, published):
        members = frozenset(row)
        made = _explanation([listed[x] for x in row], ours, published)
        if _makes_sense(made) and not any(other < members for other in chosen):
            found.append(made)
            chosen += [members] if made.exact else []
        if len(found) == best or not row:
            break
    return found


def _explanation(members: Sequence[Difference], ours: int, published: Published) -> Explanation:
    number = ours + sum(x.value for x in members)
    exact = published.lowest <= number <= published.highest
    return Explanation(tuple(members), number, published.value - number, exact)


def _makes_sense(made: Explanation) -> bool:
    groups = {x.group for x in made.differences}
    needed = {x.needs for x in made.differences if x.needs}
    return made.number > 0 and needed <= groups


def _ordered(
    listed: Sequence[Difference], ours: int, published: Published
) -> Iterator[tuple[int, ...]]:
    """Sums in order of: how far beyond the published count, how many differences, how usual.

    A sum is left out where one of its differences can be spared: where what is beyond without it
    is nothing, or less than twice as much. So is one that leaves more than 1/2, 1/4, 1/8 of the
    whole difference. Near ones would else be drawn from small change.
    """
    sets = _sums(listed)
    # one more entry, which adds nothing, fills the places of sums of fewer than three
    values = np.array([*(x.value for x in listed), 0], np.int64)
    ranks = np.array([*(explanations.ORDER.index(x.id) for x in listed), 0], np.int64)
    lowest, highest = published.lowest - ours, published.highest - ours
    sums, is_filled = values[sets].sum(1), sets == len(listed)
    beyond = _beyond(sums, lowest, highest)
    without = _beyond(sums[:, None] - values[sets], lowest, highest)
    spared = (without == 0) | (without < 2 * beyond[:, None])
    size = (~is_filled).sum(1)
    is_near = beyond <= beyond[0] >> size  # the first sum is of nothing
    kept = np.flatnonzero(is_near & ~(spared & ~is_filled).any(1))
    order = kept[np.lexsort((ranks[sets[kept]].sum(1), size[kept], beyond[kept]))]
    for at in order.tolist():
        yield tuple(x for x in sets[at].tolist() if x < len(listed))


def _beyond(sums: Ints, lowest: int, highest: int) -> Ints:
    """How far each sum is from the nearest count that would be written as the published one."""
    found: Ints = np.maximum(np.maximum(lowest - sums, sums - highest), 0)
    return found


def _sums(listed: Sequence[Difference]) -> Ints:
    """(sums, 3) indices of differences that go together, filled up with the number of them."""
    count = len(listed)
    together = np.zeros((count, count), bool)
    for j in range(count):
        for i in range(j):
            together[i, j] = listed[i].goes_with(listed[j])
    pairs = np.argwhere(together)
    # i < j < k, each with each
    of_pair, third = np.nonzero(together[pairs[:, 0]] & together[pairs[:, 1]])
    triples = np.column_stack((pairs[of_pair], third))
    none = np.full((1, 3), count)
    single = np.column_stack((np.arange(count), np.full((count, 2), count)))
    double = np.column_stack((pairs, np.full(len(pairs), count)))
    return np.concatenate((none, single, double, triples)).astype(np.int64)
