"""What fits: how wide a picture is, what is left out of the middle, drawings side by side."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from service.picture import words
from service.picture.words import Lines

GAP = "    "
MOST_HEADS = 16
Kept = list[int | None]
"""Places that are shown, in order; None stands where some are left out."""


@dataclass(frozen=True, slots=True)
class Look:
    """How wide a picture is, and whether it has colours enough to shade with."""

    width: int
    coloured: bool


def kept(length: int, most: int) -> Kept:
    """All places of a row; of a long one so many at its start and its end, and a gap."""
    if length <= most:
        return list(range(length))
    before = max(1, (most - 1) // 2)
    after = max(1, most - 1 - before)
    return [*range(before), None, *range(length - after, length)]


def left_out(places: Kept, names: Sequence[int]) -> str:
    """`4 to 90`: the names of what is left out; empty where nothing is."""
    if None not in places:
        return ""
    at = places.index(None)
    after = places[at + 1 :][0]
    return f"{names[at]} to {names[(after or 0) - 1]}"


def beside(drawings: Iterable[Lines], width: int) -> Lines:
    """Drawings side by side where there is room, else below each other, with a line between."""
    lines: Lines = []
    for shelf in _shelves(drawings, width):
        lines += [words.text(""), *_joined(shelf)] if lines else _joined(shelf)
    return lines


def _shelves(drawings: Iterable[Lines], width: int) -> list[list[Lines]]:
    shelves: list[list[Lines]] = []
    used = 0
    for drawing in drawings:
        cells = breadth(drawing)
        if shelves and used + len(GAP) + cells <= width:
            shelves[-1].append(drawing)
            used += len(GAP) + cells
        else:
            shelves.append([drawing])
            used = cells
    return shelves


def _joined(shelf: Sequence[Lines]) -> Lines:
    lines: Lines = [words.text("") for _ in range(max(map(len, shelf)))]
    start = 0
    for drawing in shelf:
        for line, part in zip(lines, drawing, strict=False):
            line.append(" " * (start - line.cell_len)).append_text(part)
        start += breadth(drawing) + len(GAP)
    return lines


def breadth(drawing: Lines) -> int:
    """Cells of the widest line."""
    return max((line.cell_len for line in drawing), default=0)
