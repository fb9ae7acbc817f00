"""Models against the first of them, as members of an answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass

from compute.config import ModelConfig
from compute.sizing import compared
from compute.sizing.compared import Change, Line, Sizes
from compute.sizing.ledger import Ledger
from compute.sizing.quantity import told
from service.sizing import ledgers

View = dict[str, object]

_MOST_PARTS = 3
_AT_LEAST = 2


@dataclass(frozen=True, slots=True)
class Side:
    """A model: its label, config and ledgers by name."""

    label: str
    config: ModelConfig
    sizes: Mapping[str, Ledger]


def total(first: Side, other: Side, name: str) -> View:
    """A model's total of one kind, and its parts, against the first model's."""
    ours, theirs = first.sizes[name], other.sizes[name]
    both = compared.total(ours, theirs)
    return {
        "label": other.label,
        "total": ledgers.amount(both.second, theirs.unit, theirs.kind),
        "difference": ledgers.amount(both.difference, theirs.unit, theirs.kind),
        "ratio": both.ratio,
        "parts": [_line(line) for line in compared.lines(ours, theirs)],
    }


def _line(line: Line) -> View:
    return {
        "id": line.id,
        "from": ledgers.number(line.first),
        "to": ledgers.number(line.second),
        "difference": ledgers.number(line.difference),
        "exact": told(line.difference),
        "ratio": line.ratio,
    }


def changes(first: Side, other: Side, sizes: Sizes) -> View:
    """Each field in which a model differs from the first, and what it moves."""
    found = compared.changes(first.config, other.config, sizes)
    return {"label": other.label, "fields": [_change(change, first.sizes) for change in found]}


def _change(change: Change, sizes: Mapping[str, Ledger]) -> View:
    old, new = _said(change.before), _said(change.after)
    return {
        "field": change.field,
        "from": old,
        "to": new,
        "cause": f"{change.field} {_word(old)} → {_word(new)}: {_effect(change, sizes)}.",
        "moves": [
            {
                "of": name,
                "difference": ledgers.amount(moved.difference, sizes[name].unit, sizes[name].kind),
                "parts": list(moved.parts),
            }
            for name, moved in change.moves.items()
            if moved.parts
        ],
    }


def _effect(change: Change, sizes: Mapping[str, Ledger]) -> str:
    """`+1,024 parameters in embed.W_E and 2 more parts; …`, or that nothing moves."""
    said = [
        f"{_signed(told(moved.difference))} {_UNITS[name].format(unit=sizes[name].unit)} in "
        + _listed(moved.parts)
        for name, moved in change.moves.items()
        if moved.parts
    ]
    return "; ".join(said) or "nothing that is compared moves"


_UNITS = {
    "parameters": "parameters",
    "flops": "{unit}",
    "kv_cache": "bytes of cache",
    "weights": "bytes of weights",
}


def _signed(digits: str) -> str:
    return digits if digits.startswith("-") else f"+{digits}"


def _listed(parts: Sequence[str]) -> str:
    rest = len(parts) - _MOST_PARTS
    named = ", ".join(parts[:_MOST_PARTS])
    return named if rest <= 0 else f"{named} and {rest} more part{'s' if rest >= _AT_LEAST else ''}"


def _said(value: object) -> bool | int | float | str | None:
    """A field's value: of a part its kind, of a list how long it is."""
    if isinstance(value, tuple):
        return f"{len(value)} listed" if value else None
    if is_dataclass(value):
        return str(getattr(value, "kind", "present"))
    return value if isinstance(value, bool | int | float | str) else None


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "none" if value is None else str(value)
