"""Words and numbers of a picture: no text of a request reaches a terminal but by here."""

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text

Floats = npt.NDArray[np.float64]
Lines = list[Text]

DIM, STRONG, PLAIN = Style(dim=True), Style(bold=True), Style()
MASKED, LEFT_OUT = "·", "…"


def safe(told: object) -> str:
    """A text whose control, formatting and unassigned characters are written out: \\x1b."""
    letters = str(told)
    return "".join(x if x.isprintable() else ascii(x)[1:-1] for x in letters)


def token(piece: str) -> str:
    """A piece of text as a label: its spaces are seen."""
    return safe(piece).replace(" ", "␣")


def text(told: object, style: Style = PLAIN) -> Text:
    """A line of text that holds no instructions for the terminal, and no markup."""
    return Text(no_wrap=True, overflow="ellipsis").append(safe(told), style)


def prose(told: object, style: Style = PLAIN) -> Text:
    """The same, going on in the next line where it is too long."""
    return Text(safe(told), style)


def clipped(told: str, cells: int) -> str:
    """A text in so many cells at most; what is cut ends in an ellipsis."""
    if cell_len(told) <= cells:
        return told
    return set_cell_size(told, max(cells - 1, 0)).rstrip() + LEFT_OUT[:cells]


def left(told: str, cells: int) -> str:
    """A text at the left of so many cells."""
    return _spare(told, cells, before=False)


def right(told: str, cells: int) -> str:
    """A text at the right of so many cells."""
    return _spare(told, cells, before=True)


def _spare(told: str, cells: int, *, before: bool) -> str:
    short = clipped(told, cells)
    spare = " " * (cells - cell_len(short))
    return spare + short if before else short + spare


def widest(told: Iterable[str], most: int) -> int:
    """Cells of the widest text, `most` at most."""
    return min(most, max(map(cell_len, told), default=0))


def value(number: float) -> str:
    """A number in four significant digits."""
    return f"{number + 0.0:.4g}" if math.isfinite(number) else _nonfinite(number)


def size(number: float) -> str:
    """A number in about three significant digits, in five cells for all but the rarest."""
    if not math.isfinite(number):
        return _nonfinite(number)
    least = abs(number)
    for below, digits in ((1e-3, None), (1e-2, 3), (10, 2), (100, 1), (1e5, 0)):
        if least < below:
            return f"{number:.{digits}f}" if digits is not None else _tiny(number)
    return f"{number:.0e}"


def weight(number: float) -> str:
    """A number of a pattern, in two decimals; zero is told from what is small."""
    if not math.isfinite(number):
        return _nonfinite(number)
    return f"{number:.2f}" if number else "0"


def _tiny(number: float) -> str:
    return f"{number:.0e}" if number else "0"


def _nonfinite(number: float) -> str:
    return "nan" if math.isnan(number) else "-inf" if number < 0 else "inf"


def percent(chance: float) -> str:
    """A probability, never rounded to all or nothing."""
    if 0.9995 <= chance < 1:
        return ">99.9%"
    return "<0.1%" if 0 < chance < 0.0005 else f"{chance:.1%}"


def rounded(number: int) -> str:
    """A count, in thousands and so on where it is large."""
    large: float = number
    for unit in ("", "k", "M", "G"):
        if large < 999.5:
            return f"{large:.3g} {unit}"
        large /= 1000
    return f"{large:,.0f} T"


def counted(number: int, one: str, many: str = "") -> str:
    """`1 block`, `3 blocks`."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def listed(words: Iterable[object], most: int) -> str:
    """Words with commas between them; how many more where they are too many."""
    told = [safe(word) for word in words]
    more = [f"and {len(told) - most:,} more"] if len(told) > most else []
    return ", ".join([*told[:most], *more])
