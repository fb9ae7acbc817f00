"""An answer as JSON Lines: a head, a line for each tensor or piece of a large one, an end line.

https://jsonlines.org. A stream that does not end in its end line, or ends in one with `error`,
has failed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from service.forms import text
from service.forms.form import Form
from service.forms.tensors import Shown

PIECE_ELEMENTS = 1 << 16
"""A tensor of more elements comes in pieces of so many: some of its rows, in order."""


def line(members: Mapping[str, object], form: Form) -> bytes:
    """One line."""
    return text.dumps(members, form) + b"\n"


def of_tensor(named: Mapping[str, object], shown: Shown, form: Form) -> Iterator[bytes]:
    """The lines of a tensor: one, or one for each piece of its rows, which says which they are.

    The rows of a piece are those of all axes but the last, counted through.
    """
    if shown.summed or shown.values.size <= PIECE_ELEMENTS:
        yield _line_of(named, shown, form)
        return
    rows = shown.values.reshape(-1, shown.values.shape[-1])
    step = max(1, PIECE_ELEMENTS // rows.shape[-1])
    for start in range(0, len(rows), step):
        piece = rows[start : start + step]
        told = {**shown.told, "rows": [start, start + len(piece)]}
        yield _line_of(named, replace(shown, told=told, values=piece), form)


def _line_of(named: Mapping[str, object], shown: Shown, form: Form) -> bytes:
    return b"".join([*text.tensor(replace(shown, told={**named, **shown.told}), form), b"\n"])
