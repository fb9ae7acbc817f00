"""Small tensors number by number, side by side, as one would write them on paper."""

from collections.abc import Iterator, Sequence

import numpy as np

from service.picture import fitting, words
from service.picture.fitting import Look
from service.picture.reading import Reading
from service.picture.tensor import MEASURES, PATTERNS, Tensor
from service.picture.words import Floats, Lines

MOST_COLUMNS, MOST_ROWS, MOST_MATRICES, _MOST_LABEL = 16, 16, 16, 12
_DRAWN_OTHERWISE = (*PATTERNS, "attn.sink", "ffn.experts")


def matrices(tensors: Sequence[Tensor], reading: Reading, look: Look) -> Lines:
    """The small ones among some tensors, with notes of those that are too many or too wide."""
    small = {tensor.stage: list(_of(tensor, reading)) for tensor in tensors if is_small(tensor)}
    drawn = [(stage, one) for stage, found in small.items() for one in found[:MOST_MATRICES]]
    shown = [one for _, one in drawn if fitting.breadth(one) <= look.width]
    wide = dict.fromkeys(stage for stage, one in drawn if fitting.breadth(one) > look.width)
    lines = fitting.beside(shown, look.width)
    notes = [
        f"Left out: {len(found) - MOST_MATRICES} more of {stage}."
        for stage, found in small.items()
        if len(found) > MOST_MATRICES
    ]
    if wide:
        notes.append(f"Left out: the numbers of {words.listed(wide, 12)}, too wide.")
    return [*lines, *(words.prose(note, words.DIM) for note in notes)]


def is_small(tensor: Tensor) -> bool:
    """Few rows and columns, more than one number a row, and not drawn otherwise; any summary."""
    if tensor.summed:
        return True
    if tensor.stage in _DRAWN_OTHERWISE:
        return False
    *rows, columns = tensor.values.shape
    return 1 < columns <= MOST_COLUMNS and int(np.prod(rows)) <= MOST_ROWS


def _of(tensor: Tensor, reading: Reading) -> Iterator[Lines]:
    """One matrix; of a stage with heads one for each, or a row for each where there is one row."""
    if tensor.stage == "attn.source_out":
        yield from _by_source(tensor, reading)
        return
    named = " ".join(filter(None, (tensor.symbol, tensor.stage)))
    columns = _columns(tensor, reading)
    places = [*map(reading.rows_of(tensor.place).place, tensor.rows)]
    if tensor.part is None:
        yield _matrix(named, (places, columns), _written(tensor.values, tensor))
        return
    parts, split = [f"{tensor.part} {at}" for at in tensor.parts], tensor.split(tensor.values)
    if len(places) < 2:
        title = f"{named}, position {places[0]}" if places else named
        rows = split[:, 0] if places else split
        yield _matrix(title, (parts, columns), _written(rows, tensor))
        return
    for part, values in zip(parts, split, strict=True):
        yield _matrix(f"{named}, {part}", (places, columns), _written(values, tensor))


def _by_source(tensor: Tensor, reading: Reading) -> Iterator[Lines]:
    """For each head and receiving position a matrix with a row for each source."""
    sources = [*map(reading.rows.place, tensor.indices["key_position"])]
    labels = sources, _columns(tensor, reading)
    for head, received in zip(tensor.parts, tensor.values, strict=True):
        for position, values in zip(tensor.rows, received, strict=True):
            title = f"{tensor.symbol}, head {head}, to {reading.rows.place(position)}"
            yield _matrix(title, labels, _written(values, tensor))


def _matrix(
    title: str, labels: tuple[Sequence[str], Sequence[str]], told: Sequence[Sequence[str]]
) -> Lines:
    """A title, a line of column labels, and a line for each row."""
    edge = words.widest(labels[0], _MOST_LABEL)
    heads = [words.clipped(label, 10) for label in labels[1]]
    widths = [words.widest(column, 12) for column in zip(heads, *told, strict=True)]
    top = words.text(" " * edge + _row(heads, widths), words.DIM)
    lines = [words.text(title, words.STRONG), top]
    places = fitting.kept(len(told), MOST_ROWS)
    gap = fitting.left_out(places, range(len(told)))
    for at in places:
        if at is None:
            lines.append(words.text(f"{words.LEFT_OUT} left out: rows {gap}", words.DIM))
            continue
        line = words.text(words.left(labels[0][at], edge), words.DIM)
        lines.append(line.append(_row(told[at], widths)))
    return lines


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    pairs = zip(cells, widths, strict=True)
    return "".join(f"  {words.right(cell, width)}" for cell, width in pairs)


def _written(values: Floats, tensor: Tensor) -> list[list[str]]:
    maskable = tensor.axes[-1] in ("key_position", "source_position")
    return [
        [words.MASKED if maskable and np.isneginf(x) else words.value(float(x)) for x in row]
        for row in values
    ]


def _columns(tensor: Tensor, reading: Reading) -> list[str]:
    """What the columns are: keys, tokens of the vocabulary, measures, or coordinates."""
    axis = tensor.axes[-1]
    if axis == "measure":
        return list(MEASURES)
    if axis == "vocabulary":
        return [*map(reading.token, tensor.indices[axis])]
    is_place = axis in ("key_position", "source_position")
    return [*map(reading.rows_of(axis).label if is_place else str, tensor.indices[axis])]
