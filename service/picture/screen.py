"""Where a picture goes: a stream, as wide as it is and with the colours it has."""

import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TextIO, cast

import orjson
from rich.console import Console, Group, RenderableType

from schemas.answers import TraceAnswer
from schemas.problems import Problem
from service.forms.tensors import Piece
from service.picture import page, problem, sizing
from service.picture.fitting import Look

_LEAST, _MOST, _SHADING = 40, 500, ("256", "truecolor")


class Screen(Console):
    """A console that leaves it to its caller what to do when nobody reads any more."""

    def on_broken_pipe(self) -> None:
        """Raise the error again that this is called for."""
        raise BrokenPipeError


def show_answer(
    pieces: Sequence[Piece], stream: TextIO, token_of: Callable[[str, int], str] | None = None
) -> None:
    """Print an answer, which comes as JSON in pieces; `token_of` as of `page.page`."""
    answer = cast(TraceAnswer, orjson.loads(b"".join(pieces)))
    screen = console(stream)
    print_all(page.page(answer, look(screen), token_of), screen)


def show_sizing(
    pieces: Sequence[Piece],
    stream: TextIO,
    notes_of: Callable[[Mapping[str, Any]], Sequence[str]],
) -> None:
    """Print a sizing answer as tables; `notes_of`: what was changed so that it could be given."""
    answer = orjson.loads(b"".join(pieces))
    screen = console(stream)
    if not stream.isatty() and "COLUMNS" not in os.environ:
        screen.width = _MOST  # a file has no edge to cut formulas at
    print_all(sizing.page(answer, notes_of(answer)), screen)


def show_problem(told: Problem, stream: TextIO) -> None:
    """Print a problem."""
    screen = console(stream)
    for line in problem.lines(told):
        screen.print(line, soft_wrap=True)


def console(stream: TextIO) -> Console:
    """A console on a stream; what its encoding lacks is printed as a question mark.

    COLUMNS, NO_COLOR and FORCE_COLOR are heeded.
    """
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    screen = Screen(file=stream, markup=False, emoji=False, highlight=False)
    screen.width = min(max(screen.width, _LEAST), _MOST)
    return screen


def look(screen: Console) -> Look:
    """The width of a console, and whether a cell can be shaded by its background."""
    coloured = screen.color_system in _SHADING and not screen.no_color
    return Look(screen.width, coloured)


def print_all(renderables: Iterable[RenderableType], screen: Console) -> None:
    """Print one below the other."""
    # As a group: a text printed by itself forgets that it must not be wrapped.
    screen.print(Group(*renderables))
