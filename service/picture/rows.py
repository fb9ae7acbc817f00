"""The stages of a block, a line each: symbol, name, shape, and how large each position's row is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.text import Text

from service.picture import fitting, shades, words
from service.picture.fitting import Kept, Look
from service.picture.reading import Reading
from service.picture.tensor import LETTERS, PATTERNS, Tensor
from service.picture.words import Floats, Lines

_CELL, _WIDEST, _RANGE, _LEAST_ROOM = 6, 10, 14, 24
_WIDE = ("key_position", "source_position", "vocabulary", "expert", "choice")
"""Last axes whose rows are no vectors of the stream: a norm would say little."""

_BY_PART = ("attn.head_out", "cross.head_out", "attn.sink", "ffn.expert_hidden", "ffn.expert_out")


@dataclass(frozen=True, slots=True)
class Columns:
    """How wide symbol, name and shape are, and which positions follow.

    cell: how wide each position's number is; None: they are a row of heights.
    """

    symbol: int
    name: int
    shape: int
    positions: Kept
    cell: int | None


def table(tensors: Sequence[Tensor], reading: Reading, look: Look) -> Lines:
    """A line for each stage, and one for each head of what heads write, each expert of a token."""
    columns = _columns(tensors, reading, look)
    lines = [_heading(columns, reading)]
    for tensor in tensors:
        lines += _lines(tensor, columns)
    gap = fitting.left_out(columns.positions, range(reading.rows.positions))
    if gap:
        lines.append(words.text(f"Left out: positions {gap}.", words.DIM))
    return lines


def norms(tensor: Tensor) -> Floats:
    """The norm of each row: over the last axis, or as a summary has it."""
    if tensor.summed:
        measured: Floats = tensor.values[..., 0]
        return measured
    return length(tensor.values, -1)


def length(values: Floats, axis: int) -> Floats:
    """The root of the sum of squares over an axis; inf where that is beyond all numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        total: Floats = np.square(values).sum(axis=axis)
    return np.sqrt(total)


def shape(tensor: Tensor) -> str:
    """`h=3 n=6 k=16`; `n=[0 5]` where only these were asked for."""
    return " ".join(axis(tensor, at) for at in tensor.axes if at not in ("measure", "1"))


def axis(tensor: Tensor, name: str) -> str:
    """An axis: its letter and length, or which entries of it there are."""
    index, letter = tensor.indices[name], LETTERS[name]
    if name not in tensor.sliced:
        return f"{letter}={len(index)}"
    told = [str(at) for at in index]
    some = told if len(told) < 4 else [*told[:2], words.LEFT_OUT, told[-1]]
    return f"{letter}=[{' '.join(some)}]"


def extent(tensor: Tensor) -> str:
    """Least and largest number, and how many are masked."""
    finite = tensor.values[np.isfinite(tensor.values)]
    told = f"{words.size(finite.min())} to {words.size(finite.max())}" if finite.size else "none"
    masked = int(np.isneginf(tensor.values).sum())
    odd = tensor.values.size - finite.size - masked
    others = f", {odd} not finite" if odd else ""
    return told + (f", {masked} masked" if masked else "") + others


def _columns(tensors: Sequence[Tensor], reading: Reading, look: Look) -> Columns:
    symbol = words.widest((f"{tensor.symbol} " for tensor in tensors if tensor.symbol), 17)
    name = max(words.widest((tensor.stage for tensor in tensors), 21), 7)
    shapes = words.widest(map(shape, tensors), 24)
    shapes = shapes if look.width - symbol - name - shapes - 4 >= _LEAST_ROOM else 0
    room = look.width - symbol - name - shapes - 4
    cell = cell_width([reading.rows.label(at) for at in range(reading.rows.positions)], room)
    most = max(room - _RANGE, 3) if cell is None else reading.rows.positions
    return Columns(symbol, name, shapes, fitting.kept(reading.rows.positions, most), cell)


def cell_width(labels: Sequence[str], room: int, least: int = _CELL) -> int | None:
    """How wide equal columns may be: as their labels, or `least`; None where all is too wide."""
    wanted = max(words.widest(labels, _WIDEST - 1) + 1, least)
    return next((cell for cell in (wanted, least) if len(labels) * cell <= room), None)


def _heading(columns: Columns, reading: Reading) -> Text:
    blank = " " * (columns.symbol + columns.name + columns.shape + 2)
    if columns.cell is None:
        return words.text(f"{blank} norms, first to last", words.DIM)
    labels = (reading.rows.label(at) for at in columns.positions if at is not None)
    told = "".join(f" {words.right(label, columns.cell - 1)}" for label in labels)
    return words.text(f"{blank}{told}", words.DIM)


def _lines(tensor: Tensor, columns: Columns) -> Iterator[Text]:
    line = _named(tensor, columns)
    if not tensor.rows:
        yield line.append("  summary below", words.DIM)
    elif tensor.axes[-1] in _WIDE or tensor.values.ndim > 3 or tensor.place == "source_position":
        yield line.append(_instead(tensor), words.DIM)
    elif tensor.part is None:
        yield line.append_text(_sizes(norms(tensor), tensor.rows, columns))
    elif tensor.summed or tensor.stage in _BY_PART:
        yield line
        yield from _by_part(tensor, columns)
    else:
        together = length(tensor.split(norms(tensor)), 0)
        yield line.append_text(_sizes(together, tensor.rows, columns))


def _instead(tensor: Tensor) -> str:
    """What is said of a stage whose rows have no norm worth reading, or stand elsewhere."""
    if tensor.summed:
        return "  summary below"
    if tensor.stage in (*PATTERNS, "attn.source_out"):
        return "  maps below"
    if tensor.stage == "ffn.experts":
        return "  chosen below"
    if tensor.axes[-1] in _WIDE:
        return f"  {extent(tensor)}"
    found = length(norms(tensor), 0)
    ends = map(words.size, (found.min(), found.max()))
    return f"  norms of the memory's rows: {' to '.join(dict.fromkeys(ends))}"


def _named(tensor: Tensor, columns: Columns) -> Text:
    style = words.STRONG if tensor.symbol else words.PLAIN
    line = words.text(words.left(tensor.symbol, columns.symbol), style)
    line.append(words.left(tensor.stage, columns.name), words.PLAIN)
    return line.append(f"  {words.left(shape(tensor), columns.shape)}", words.DIM)


def _by_part(tensor: Tensor, columns: Columns) -> Iterator[Text]:
    """A line for each head or choice; of a sink its weights, which have no norm."""
    is_weight = tensor.axes[-1] == tensor.place
    found = tensor.split(tensor.values if is_weight else norms(tensor))
    before = " " * columns.symbol
    for at, part in enumerate(tensor.parts[: fitting.MOST_HEADS]):
        word = words.left(f"  {tensor.part} {part}", columns.name + columns.shape + 2)
        yield words.text(before + word).append_text(_sizes(found[at], tensor.rows, columns))
    if len(tensor.parts) > fitting.MOST_HEADS:
        more = words.counted(len(tensor.parts) - fitting.MOST_HEADS, str(tensor.part))
        yield words.text(f"{before}  Left out: {more}.", words.DIM)


def _sizes(found: Floats, positions: Sequence[int], columns: Columns) -> Text:
    by_position = {at: float(norm) for at, norm in zip(positions, found, strict=True)}
    if columns.cell is not None:
        told = [
            words.size(by_position[at]) if at in by_position else "" for at in columns.positions
        ]
        return Text("".join(f" {words.right(word, columns.cell - 1)}" for word in told))
    if len(by_position) == 1:
        ((position, norm),) = by_position.items()
        return Text(f" {words.size(norm)} at position {position}")
    return _heights(by_position, columns)


def _heights(by_position: Mapping[int, float], columns: Columns) -> Text:
    finite = [norm for norm in by_position.values() if np.isfinite(norm)]
    top = max(finite, default=0.0)
    drawn = "".join(
        words.LEFT_OUT if at is None else _height(by_position.get(at), top)
        for at in columns.positions
    )
    ends = map(words.size, (min(finite, default=np.nan), max(finite, default=np.nan)))
    line = Text(" ").append(drawn, shades.STREAM)
    return line.append(f" {' to '.join(dict.fromkeys(ends))}")


def _height(norm: float | None, top: float) -> str:
    if norm is None:
        return " "
    return shades.height(shades.share(norm, top)) if np.isfinite(norm) else "!"
