"""From a number between 0 and 1 to a colour, a shaded character, a bar."""

import math

from rich.color import Color, blend_rgb
from rich.color_triplet import ColorTriplet
from rich.style import Style

_RAMP = (
    ColorTriplet(0x30, 0x12, 0x3B),
    ColorTriplet(0x3B, 0x52, 0x8B),
    ColorTriplet(0x21, 0x91, 0x8C),
    ColorTriplet(0x5E, 0xC9, 0x62),
    ColorTriplet(0xFD, 0xE7, 0x25),
)
"""Dark violet over green to yellow: even steps of lightness, told apart by every eye."""

_LIGHT, _DARK = Color.parse("#ffffff"), Color.parse("#000000")
_LEVELS = ((0.05, " "), (0.25, "░"), (0.5, "▒"), (0.75, "▓"))
_EIGHTHS, _HEIGHTS = " ▏▎▍▌▋▊▉█", "▁▂▃▄▅▆▇"

ODD = "!"
"""Stands for the shade of a number that is not finite."""

STREAM, UPDATE = Style(color="cyan"), Style(color="yellow")

WRONG = Style(color=_LIGHT, bgcolor=Color.parse("#a01010"))
"""The background of such a number."""

SHADES_SAY = "░ from 0.05, ▒ from 0.25, ▓ from 0.5, █ from 0.75"


def share(number: float, top: float) -> float:
    """A number as a part of the largest, 0 to 1; 0 for what is not finite."""
    if not math.isfinite(number):
        return 0.0
    return min(max(number / top, 0.0), 1.0) if top > 0 else 0.0


def colour(part: float) -> Style:
    """The background of a part, and a colour that reads on it."""
    at = min(int(part * 4), 3)
    mixed = blend_rgb(_RAMP[at], _RAMP[at + 1], part * 4 - at)
    return Style(color=_DARK if part > 0.55 else _LIGHT, bgcolor=Color.from_triplet(mixed))


def shade(part: float) -> str:
    """A character as dark as a part is large."""
    return next((letter for below, letter in _LEVELS if part < below), "█")


def height(part: float) -> str:
    """A character as high as a part is large; the highest leaves lines apart."""
    return _HEIGHTS[min(int(part * 7), 6)]


def bar(part: float, cells: int) -> str:
    """A bar of an eighth of a cell to all the cells; empty for nothing at all."""
    eighths = max(round(part * cells * 8), 1 if part > 0 else 0)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()
