"""A published count and its explanations as members of an answer."""

from collections.abc import Sequence

from compute.sizing.quantity import told
from compute.sizing.reconciling.differences import Change, Difference, letters_of
from compute.sizing.reconciling.reconcile import Explanation, Published
from schemas.sizing.reconcile import Written
from service.sizing import ledgers

View = dict[str, object]

_MEANINGS = {
    "rotary_dim": "position.rotary_dim",
    "vocab": "vocab",
    "ours": "ours, the exact count",
    "f_dense": "ffn.d_dense",
    "L_distinct": "distinct_blocks",
    "n_positions_other": "position.n_positions as the published count would have it",
    "V_other": "vocab as the published count would have it",
    "h_other": "attention.n_heads as the published count would have it",
    "k_other": "attention.d_head as the published count would have it",
    "L_other": "n_layers as the published count would have it",
}

_NOTES = ("This is arithmetic: that a number comes out does not show how it was counted.",)
_ROUNDED = (
    "The published count is rounded: many counts are written like it, and many ways lead there."
)
_NEAR = "An explanation that is not exact leaves a rest: nearness by itself explains nothing."


def published(asked: Written) -> Published:
    """The count as compute has it."""
    return Published(asked.value, asked.lowest, asked.highest)


def view(found: Sequence[Explanation], asked: Written, ours: int) -> View:
    """The members about the counts and what lies between them."""
    explanations = [_explanation(made, asked) for made in found]
    return {
        "ours": _amount(ours),
        "published": {
            "text": asked.text,
            "value": _amount(asked.value),
            "lowest": _amount(asked.lowest),
            "highest": _amount(asked.highest),
        },
        "difference": _amount(asked.value - ours),
        "explanations": explanations,
        "explained": any(made.exact for made in found),
        "notes": _notes(found, asked),
    }


def letters(found: Sequence[Explanation], known: Sequence[View]) -> list[View]:
    """The letters of the formulas: those that are known, and those that the others use."""
    used: dict[str, int] = {}
    for change in _changes(found):
        used |= letters_of(change.quantity)
    named = {symbol["letter"] for symbol in known}
    more = [
        {"letter": letter, "meaning": _MEANINGS.get(letter, letter), "value": value}
        for letter, value in used.items()
        if letter not in named
    ]
    return [*known, *more]


def _changes(found: Sequence[Explanation]) -> list[Change]:
    return [x for made in found for each in made.differences for x in each.changes]


def _amount(value: int) -> View:
    return ledgers.amount(value, "parameters")


def _notes(found: Sequence[Explanation], asked: Written) -> list[str]:
    rounded = [_ROUNDED] if asked.lowest != asked.highest else []
    near = [] if all(made.exact for made in found) else [_NEAR]
    return [*_NOTES, *rounded, *near]


def _explanation(made: Explanation, asked: Written) -> View:
    name, words = _named(made, asked)
    return {
        "id": name,
        "words": words,
        "differences": [_difference(x) for x in made.differences],
        "number": _amount(made.number),
        "remaining": _amount(made.remaining),
        "exact": made.exact,
    }


def _named(made: Explanation, asked: Written) -> tuple[str, str]:
    if made.differences:
        ids, words = zip(*((x.id, x.words) for x in made.differences), strict=True)
        return "+".join(ids), " ".join(words)
    if made.exact and made.remaining:
        return "rounding", f"Every number once, rounded as {asked.text}."
    return "as_counted", "Every number once."


def _difference(found: Difference) -> View:
    return {
        "id": found.id,
        "group": found.group,
        "words": found.words,
        "value": _amount(found.value),
        "parts": [_part(change) for change in found.changes],
    }


def _part(change: Change) -> View:
    return {
        "id": change.id,
        "value": ledgers.number(change.value),
        "exact": told(change.value),
        "formula": change.formula,
        "substituted": change.substituted,
    }
