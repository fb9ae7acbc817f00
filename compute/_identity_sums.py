"""Sums of stages in float64, term by term, so that no term need stay."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from compute._identity_measures import Measured, Operands, Rows, joined, part
from compute.types import Array


@dataclass(slots=True)
class Sum:
    """Σ terms and Σ |terms|, each (..., n, d) like a term, added in the order the terms come."""

    left: Array = field(default_factory=lambda: np.zeros(()))
    size: Array = field(default_factory=lambda: np.zeros(()))

    def add(self, term: Array) -> None:
        """One term more."""
        self.left = _added(self.left, term)
        self.size = _added(self.size, np.abs(term))

    def rows(self, rows: Rows) -> "Sum":
        """The same of some rows."""
        return Sum(self.left[rows], self.size[rows])


def addition(operands: Operands) -> Measured:
    """The sum of all but the last = the last, row block by row block."""
    *terms, total = operands.values

    def of(rows: Rows) -> Sum:
        made = Sum()
        for term in terms:
            made.add(term[rows])
        return made

    return against(total, operands.row_blocks(total), of, len(terms))


def against(
    total: Array, blocks: Iterable[Rows], sum_of: Callable[[Rows], Sum], width: int
) -> Measured:
    """How far the sum of `width` terms, given by rows, is from the total."""
    parts, size = [], 0.0
    for rows in blocks:
        summed = sum_of(rows)
        size = max(size, float(summed.size.max()))
        parts.append(part(summed.left, total[rows]))
    return joined(parts, size, width)


def _added(x: Array, term: Array) -> Array:
    """x + term in float64; in place where x is no longer the zero it began as."""
    return np.add(x, term, out=x) if x.ndim else x + term
