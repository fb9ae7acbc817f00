"""What a style's models hold, as a polynomial of d_model, its widths and the number of blocks.

Every tensor is a product of axes, of which d, heads (a share of d) and widths alone follow the
size, so a count at so many blocks is of degree 2 in d and of degree 1 in each width, and one more
step of blocks adds the same. A few exact counts give all of it; thousands of sizes are then whole
numbers multiplied, not models listed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from compute.config import ModelConfig
from compute.sizing.inverting.inverse_style import Style

Measure = Callable[[ModelConfig], int]
_Name = tuple[str, str]
_Row = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """Value at d = t · unit by Newton's differences:

        start + (t-1) Δ + (t-1)(t-2)/2 Δ² + Σ_w (w-1)·(slope_w + (t-1) Δslope_w)

    `row`: start, Δ, Δ². `slopes`: width -> slope, Δslope.
    """

    unit: int
    row: _Row
    slopes: Mapping[_Name, _Row]

    def __call__(self, d: int, widths: Mapping[_Name, int]) -> int:
        """The value at a width of the stream, a multiple of the unit."""
        t = d // self.unit - 1
        start, first, second = self.row
        found = start + t * first + t * (t - 1) // 2 * second
        for name, (slope, more) in self.slopes.items():
            found += (widths[name] - 1) * (slope + t * more)
        return found

    def less(self, other: "Form") -> "Form":
        """The difference of two."""
        slopes = {name: _less(row, other.slopes[name]) for name, row in self.slopes.items()}
        return Form(self.unit, _less(self.row, other.row), slopes)


def of(style: Style, measure: Measure) -> tuple[Form, Form]:
    """The value with the fewest blocks, and what one step of blocks more adds."""
    first = _at(style, measure, style.first_block)
    return first, _at(style, measure, style.first_block + style.step).less(first)


def _at(style: Style, measure: Measure, blocks: int) -> Form:
    unit, ones = style.unit, dict.fromkeys(style.widths(style.unit), 1)

    def value(t: int, wider: _Name | None = None) -> int:
        widths = ones if wider is None else {**ones, wider: 2}
        return measure(style.alike(t * unit, blocks, widths))

    row = [value(t) for t in (1, 2, 3)]
    slopes = {}
    for name in ones:
        slope, after = (value(t, name) - row[t - 1] for t in (1, 2))
        slopes[name] = (slope, after - slope)
    return Form(unit, _differences(row), slopes)


def _differences(values: Sequence[int]) -> _Row:
    a, b, c = values
    return a, b - a, c - 2 * b + a


def _less(row: _Row, other: _Row) -> _Row:
    return tuple(a - b for a, b in zip(row, other, strict=True))
