"""A heat map: rows of shaded cells, with numbers where they fit."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rich.text import Text

from service.picture import fitting, rows, shades, words
from service.picture.fitting import Kept, Look
from service.picture.words import Floats, Lines

Bools = npt.NDArray[np.bool_]

MOST_NUMBERED, MOST_SHADED, _MOST_LABEL = 12, 32, 12
_NUMBERED, _COLOURED, _SHADED = 6, 5, 2


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    """Numbers by query and key, which are masked, the top of the scale, what they are called.

    written: a number as the map has it; shaded is what is written, so that both agree.
    keys: the numbers of the keys, which stand over the columns where their labels do not fit.
    """

    title: str
    values: Floats
    masked: Bools
    top: float
    written: Callable[[float], str]
    keys: Sequence[int]
    row_labels: Sequence[str]
    column_labels: Sequence[str]


@dataclass(frozen=True, slots=True)
class Grid:
    """How a map is laid out: cells before each row, cells of a column, what is shown."""

    edge: int
    cell: int
    coloured: bool
    queries: Kept
    keys: Kept

    @property
    def numbered(self) -> bool:
        """There is room for numbers."""
        return self.cell > _SHADED


def grid(one: Map, look: Look) -> Grid:
    """Columns wide enough for labels, or for numbers, or for a shade alone; at most so many."""
    edge = words.widest(one.row_labels, _MOST_LABEL) + 1
    counts = len(one.row_labels), len(one.column_labels)
    cell = None
    if max(counts) <= MOST_NUMBERED:
        least = _COLOURED if look.coloured else _NUMBERED
        cell = rows.cell_width(one.column_labels, look.width - edge, least)
    most = min(MOST_SHADED, (look.width - edge) // _SHADED) if cell is None else MOST_NUMBERED
    queries, keys = (fitting.kept(count, most) for count in counts)
    return Grid(edge, cell or _SHADED, look.coloured, queries, keys)


def drawing(one: Map, look: Look) -> Lines:
    """A map: its title, a line of keys, then a line for each query."""
    laid = grid(one, look)
    lines = [words.text(one.title, words.STRONG), _heading(one, laid)]
    for query in laid.queries:
        if query is None:
            lines.append(words.text(words.right(words.LEFT_OUT, laid.edge)))
            continue
        line = words.text(words.left(one.row_labels[query], laid.edge), words.DIM)
        for key in laid.keys:
            line.append_text(_cell(one, (query, key), laid))
        lines.append(line)
    return lines


def _heading(one: Map, laid: Grid) -> Text:
    if not laid.numbered and words.widest(one.column_labels, _MOST_LABEL) > 1:
        return words.text(" " * laid.edge + _ruler(one, laid.keys), words.DIM)
    after = "" if laid.numbered and laid.coloured else " "
    labels = (words.LEFT_OUT if key is None else one.column_labels[key] for key in laid.keys)
    told = "".join(words.right(label, laid.cell - len(after)) + after for label in labels)
    return words.text(" " * laid.edge + told, words.DIM)


def _ruler(one: Map, keys: Kept) -> str:
    """The numbers of every fifth key and of those after a gap, where there is room."""
    told = ""
    for at, key in enumerate(keys):
        marked = key is None or one.keys[key] % 5 == 0 or (at > 0 and keys[at - 1] is None)
        if marked and len(told) <= at * _SHADED:
            word = words.LEFT_OUT if key is None else str(one.keys[key])
            told = f"{told:<{at * _SHADED}}{word} "
    return told.rstrip()


def _cell(one: Map, at: tuple[int, int | None], laid: Grid) -> Text:
    """A number in a colour or beside a shade of its size; the shade alone for want of room."""
    query, key = at
    if key is None:
        return Text(words.LEFT_OUT.center(laid.cell))
    if one.masked[query, key]:
        after = "" if laid.numbered and laid.coloured else " "
        return Text(words.right(words.MASKED, laid.cell - len(after)) + after, words.DIM)
    number = one.written(float(one.values[query, key]))
    told = number if laid.numbered else ""
    finite, part = math.isfinite(float(number)), shades.share(float(number), one.top)
    if laid.coloured:
        return Text(words.right(told, laid.cell), shades.colour(part) if finite else shades.WRONG)
    shade = shades.shade(part) if finite else shades.ODD
    return Text(told.rjust(laid.cell - 1) + shade if laid.numbered else shade * laid.cell)
