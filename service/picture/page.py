"""The page: a whole answer as lines, from the head down, each block in the order of computation."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from compute import stages
from schemas.answers import TraceAnswer
from service.picture import (
    experts,
    foot,
    head,
    legend,
    matrices,
    patterns,
    readout,
    rows,
    stream,
    words,
)
from service.picture.fitting import Look
from service.picture.head import Fact
from service.picture.reading import Reading, by_stack, readings
from service.picture.tensor import PATTERNS, Tensor
from service.picture.words import Lines

MOST_BATCH_ROWS = 4


def page(
    answer: TraceAnswer, look: Look, token_of: Callable[[str, int], str] | None = None
) -> Iterator[RenderableType]:
    """All there is to print, in order.

    token_of: from a model's name and a token id to its text, for tokens the answer does not tell.
    """
    found = list(readings(answer, token_of))
    if answer["input"]["batch"] is None:
        yield facts([*head.of_answer(answer), *head.of_reading(found[0])])
        yield from _sections(found[0], look)
    else:
        yield facts(head.of_answer(answer))
        yield from _batch(found, answer["input"]["batch"], look)
    yield from heading("checks and cost")
    yield facts(foot.of_answer(answer))
    yield from heading("how to read it")
    yield facts(legend.of_readings(found[:MOST_BATCH_ROWS], look))


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
    """The encoder, then the model's own stack: each block under its heading, what stands before
    the blocks and after them too, and how the stream grew."""
    for stack in by_stack(reading):
        of = "encoder: " if stack.stack else ""
        for (layer, above), group in groupby(stack.tensors, _section_of):
            tensors = list(group)
            yield from heading(of + _title(layer, above))
            yield from rows.table(tensors, stack, look)
            for drawn in filter(None, _drawings(tensors, stack, look)):
                yield Text("")
                yield from drawn
        grown = stream.growth(stack, look)
        if grown:
            told = "the stream: mean norm of its rows, and of what is added"
            yield from heading(of + told)
            yield from grown


def _section_of(tensor: Tensor) -> tuple[int | None, bool]:
    return stages.layer_of(tensor.name), stages.is_above(tensor.name)


def _title(layer: int | None, above: bool) -> str:
    if layer is not None:
        return f"block {layer}"
    return "after the blocks" if above else "before the blocks"


def _drawings(tensors: Sequence[Tensor], reading: Reading, look: Look) -> Iterator[Lines]:
    """Numbers of the small tensors, heat maps, experts, the likeliest tokens: those there are."""
    yield matrices.matrices(tensors, reading, look)
    for tensor in tensors:
        if tensor.summed:
            continue
        if tensor.stage in (*PATTERNS, "attn.source_out"):
            yield patterns.maps(tensor, reading, look)
        elif tensor.stage == "ffn.experts":
            yield experts.chosen(tensor, reading, look)
        elif tensor.stage == "logits":
            yield readout.likeliest(tensor, reading)
