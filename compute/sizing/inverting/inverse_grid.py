"""The grid of an inverse question: the widths and blocks that its rule allows, and their values."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from compute.errors import Fault, QuestionError
from compute.sizing.holdings import holdings
from compute.sizing.inverting import inverse_form
from compute.sizing.inverting.inverse_form import Form, Measure
from compute.sizing.inverting.inverse_style import Style

MOST_WIDTHS = 1 << 15
"""Widths of d_model in one question."""
_LOOKED_AT = 4096


@dataclass(frozen=True, slots=True)
class Candidate:
    """A size of the grid and its value, up to what the rounding of tensors adds, in parts of a byte
    that make it whole."""

    value: int
    d: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Grid:
    """The widths that leave any number of blocks; the value with the fewest blocks, and what one
    step of blocks adds, both in numbers; how much a number is of the value.

    Values and targets here are whole: times the scale's denominator.
    """

    style: Style
    widths: Sequence[int]
    start: Form
    step: Form
    scale: Fraction

    def candidate(self, d: int, blocks: int) -> Candidate:
        """A size and its value: start + step · (blocks - first) / step of blocks."""
        widths = self.style.widths(d)
        return self._candidate(d, self.start(d, widths), self.step(d, widths), blocks)

    def reaching(self, target: int, more: int) -> Sequence[int]:
        """The widths whose values lie on both sides of a target, and `more` beyond them.

        With d_model the least and the largest value grow: two bisections.
        """
        low = bisect_left(self.widths, target, key=self._largest)
        high = bisect_left(self.widths, target + 1, key=self._least)
        return self.widths[max(0, min(low, high) - more) : max(low, high) + more]

    def nearest(self, d: int, target: int, count: int, slack: int) -> Iterator[Candidate]:
        """Of a width the sizes nearest to a target, `count` on each side: L = (target - A) / B."""
        widths, allowed = self.style.widths(d), blocks(self.style, d)
        start, step = self.start(d, widths), self.step(d, widths)
        if step > 0:
            own = (target // self.scale.numerator - start) // step
            at = self.style.first_block + own * self.style.step
            many = count + 2 * slack // (step * self.scale.numerator) + bool(slack)
            index = (at - allowed.start) // allowed.step + 1
            first = max(0, min(index - many, len(allowed) - many))
            allowed = allowed[first : max(index + many, many)]
        for found in allowed if step > 0 else allowed[:count]:
            yield self._candidate(d, start, step, found)

    def slack(self) -> int:
        """What the rounding of tensors adds at most: a byte for each of the largest size."""
        if self.scale.denominator == 1:
            return 0
        d = self.widths[-1]
        config = self.style.alike(d, blocks(self.style, d)[-1], self.style.widths(d))
        return sum(held.count for held in holdings(config)) * self.scale.denominator

    def ends(self) -> tuple[Candidate, Candidate]:
        """The smallest and the largest size."""
        first, last = self.widths[0], self.widths[-1]
        least, most = blocks(self.style, first)[0], blocks(self.style, last)[-1]
        return self.candidate(first, least), self.candidate(last, most)

    def _largest(self, d: int) -> int:
        return self.candidate(d, blocks(self.style, d)[-1]).value

    def _least(self, d: int) -> int:
        return self.candidate(d, blocks(self.style, d)[0]).value

    def _candidate(self, d: int, start: int, step: int, count: int) -> Candidate:
        numbers = start + (count - self.style.first_block) // self.style.step * step
        return Candidate(numbers * self.scale.numerator, d, count)


def of(style: Style, measure: Measure, scale: Fraction) -> Grid:
    """The grid of a style; a QuestionError where there are too many widths."""
    allowed = _between(style)
    if len(allowed) > MOST_WIDTHS:
        detail = (
            f"A question has at most {MOST_WIDTHS} widths of d_model: give a larger multiple_of, "
            "or narrower bounds."
        )
        fault = Fault(
            code="too_many_widths",
            detail=detail,
            place=("d_model",),
            expected=MOST_WIDTHS,
            got=len(allowed),
        )
        raise QuestionError([fault])
    widths = tuple(d for d in allowed if is_allowed(style, d))
    return Grid(style, widths, *inverse_form.of(style, measure), scale)


def blocks(style: Style, d: int) -> range:
    """The numbers of blocks L that a width leaves: least <= d / L <= most."""
    least, most = style.rule.aspect
    step = style.step
    low = max(style.first_block, -(-d // most))
    return range(-(-low // step) * step, min(style.most_blocks, d // least) + 1, step)


def is_allowed(style: Style, d: int) -> bool:
    """Whether a multiple of the unit leaves any blocks, and is no width that the base forbids."""
    return len(blocks(style, d)) > 0 and d != style.base.d_embed


def _between(style: Style) -> range:
    unit, rule = style.unit, style.rule
    low = max(rule.least, rule.aspect[0] * style.first_block)
    high = min(rule.most, style.widest, rule.aspect[1] * style.most_blocks)
    return range(-(-low // unit) * unit, high + 1, unit)


def around(style: Style) -> tuple[int | None, int | None]:
    """Outside the bounds of d_model, the nearest widths that would be allowed; None: none near."""
    unit, rule = style.unit, style.rule
    below, above = (rule.least - 1) // unit * unit, (rule.most // unit + 1) * unit
    down = range(below, max(0, below - _LOOKED_AT * unit), -unit)
    up = range(above, min(style.widest + 1, above + _LOOKED_AT * unit), unit)
    first, second = (next((d for d in x if is_allowed(style, d)), None) for x in (down, up))
    return first, second
