"""The page: a whole answer as lines, from the head down, each block in the order of computation."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from compute import stages
from schemas.answers import TraceAnswer
from service.picture import foot, head, matrices, patterns, readout, rows, shades, stream, words
from service.picture.fitting import Look
from service.picture.head import Fact
from service.picture.reading import LETTERS, Reading, Tensor, readings
from service.picture.words import Lines

MOST_BATCH_ROWS = 4


def page(answer: TraceAnswer, look: Look) -> Iterator[RenderableType]:
    """All there is to print, in order."""
    found = list(readings(answer))
    if answer["input"]["batch"] is None:
        yield facts([*head.of_answer(answer), *head.of_reading(found[0])])
        yield from _sections(found[0], look)
    else:
        yield facts(head.of_answer(answer))
        yield from _batch(found, answer["input"]["batch"], look)
    yield from heading("checks and cost")
    yield facts(foot.of_answer(answer))
    yield from heading("how to read it")
    yield facts(_legend(found[:MOST_BATCH_ROWS], look))


def _batch(found: Sequence[Reading], batch: int, look: Look) -> Iterator[RenderableType]:
    """The first rows, each under a heading of its own."""
    for reading in found[:MOST_BATCH_ROWS]:
        yield from heading(f"row {reading.at} of a batch of {batch}", "═")
        yield facts(head.of_reading(reading))
        yield from _sections(reading, look)
    if len(found) > MOST_BATCH_ROWS:
        yield Text("")
        rest = ", ".join(str(reading.at) for reading in found[MOST_BATCH_ROWS:])
        yield words.prose(f"Left out of the batch: rows {rest}. Ask for them with `batch`.")


def facts(told: Iterable[Fact]) -> Table:
    """Words at the left, what is said of each at the right."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for word, said in told:
        grid.add_row(words.text(word, words.DIM), words.prose(said))
    return grid


def heading(title: str, line: str = "─") -> Iterator[RenderableType]:
    """A title on a line across the page."""
    yield Text("")
    yield Rule(words.text(title, words.STRONG), characters=line, align="left", style=words.DIM)


def _sections(reading: Reading, look: Look) -> Iterator[RenderableType]:
    """Each block under its heading; what stands before the blocks and after them too."""
    for (layer, _), group in groupby(reading.tensors, _section_of):
        tensors = list(group)
        yield from heading(_title(layer, tensors))
        yield from rows.table(tensors, reading, look)
        for drawn in filter(None, _drawings(tensors, reading, look)):
            yield Text("")
            yield from drawn
    grown = stream.growth(reading, look)
    if grown:
        yield from heading("the stream: mean norm of its rows, and of what is added")
        yield from grown


def _section_of(tensor: Tensor) -> tuple[int | None, bool]:
    return stages.layer_of(tensor.name), tensor.stage in ("embed", "pos_embed")


def _title(layer: int | None, tensors: Sequence[Tensor]) -> str:
    if layer is not None:
        return f"block {layer}"
    return "before the blocks" if _section_of(tensors[0])[1] else "after the blocks"


def _drawings(tensors: Sequence[Tensor], reading: Reading, look: Look) -> Iterator[Lines]:
    """Numbers of the small tensors, heat maps, the likeliest tokens: those there are."""
    yield matrices.matrices(tensors, reading, look)
    for tensor in tensors:
        if tensor.summed:
            continue
        if tensor.stage in ("attn.pattern", "attn.source_out"):
            yield [_caption(tensor), *patterns.maps(tensor, reading, look)]
        elif tensor.stage == "logits":
            yield readout.likeliest(tensor, reading)


def _caption(tensor: Tensor) -> Text:
    what = "pattern: how much a query (row) takes from each key (column)"
    if tensor.stage == "attn.source_out":
        what = "norm of what each source (column) gives a position (row)"
    return words.text(f"{tensor.symbol}  {what}")


def _legend(found: Sequence[Reading], look: Look) -> Iterator[Fact]:
    """What the letters and shades mean, as far as there are any."""
    tensors = [tensor for reading in found for tensor in reading.tensors]
    axes = dict.fromkeys(axis for tensor in tensors for axis in tensor.axes if axis in LETTERS)
    if axes:
        yield "shapes", ", ".join(f"{LETTERS[axis]} {axis}" for axis in axes if axis != "1")
        yield "numbers", "the norm of each position's row; over all heads where none is named"
    if any(tensor.stage == "attn.pattern" for tensor in tensors):
        shaded = "the lighter the more" if look.coloured else shades.SHADES_SAY
        yield "maps", f"{shaded}; {words.MASKED} masked, 0 exactly zero"
    yield "all of it", "glassblock trace --json"
