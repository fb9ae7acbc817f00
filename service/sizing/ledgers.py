"""Ledgers as members of an answer: values, every digit, formulas."""

from collections.abc import Sequence

from compute.sizing.ledger import Ledger, Part
from compute.sizing.quantity import Exact, told, whole, written
from compute.sizing.vocabulary import Kind, Unit

View = dict[str, object]

_LARGEST = 1 << 53
"""Whole numbers up to here are doubles too."""


def number(value: Exact) -> int | float:
    """A number as JSON has it: whole up to 2^53, else the nearest double."""
    value = whole(value)
    if type(value) is int and abs(value) < _LARGEST:
        return value
    return float(value)


def amount(value: Exact, unit: Unit, kind: Kind = "exact") -> View:
    """A number with every digit, its unit and what it claims."""
    made: View = {"value": number(value), "exact": told(value), "unit": unit, "kind": kind}
    if unit == "bytes":
        made |= {"GiB": float(value / (1 << 30)), "GB": float(value / 10**9)}
    return made


def ledger(found: Ledger) -> View:
    """A total and its parts."""
    return {"total": amount(found.total, found.unit, found.kind), "parts": parts(found)}


def parts(found: Ledger) -> list[View]:
    """The parts of a total."""
    return lines(found.parts, found.total, found.views)


def lines(listed: Sequence[Part], total: Exact, views: Sequence[str] = ()) -> list[View]:
    """A line for each part; `total`: what shares are of; `views`: in their order."""
    return [_line(part, total, views) for part in listed]


def _line(part: Part, total: Exact, views: Sequence[str]) -> View:
    formula, substituted = written(part.quantity)
    value = part.value
    return {
        "id": part.id,
        "count": part.count,
        "each": number(part.each.value),
        "value": number(value),
        "exact": told(value),
        "share": float(value / total) if total else 0.0,
        "formula": formula,
        "substituted": substituted,
        "in": [view for view in views if view in part.views],
    }
