"""Bytes that a stage takes in the forms of an answer that are not nested lists: in each about, and
at most, which no answer is beyond.

Their numbers are bytes, so that all that is not known before is `nonfinite`: at most a run of one
entry for each number.
"""

from dataclasses import dataclass
from math import prod

from compute import cost
from compute.sizing.tracing import json_bytes
from compute.sizing.tracing.json_bytes import SUMMARIES
from compute.sizing.tracing.shown import Shown

_ENTRY = len('"entry":"",')
_OFFSETS = len('"":{"dtype":"BOOL","shape":[],"data_offsets":[,]},') + 2 * 20
_PACKED = len('{"dtype":"float64","shape":[],"data":""}')
_ROWS = len('"rows":[,],') + 2 * 20
ROUNDED = len('"rounded":17,')
"""What an answer to a request with `digits` says of each tensor."""

_ESCAPED = 2
"""JSON inside a JSON string: a quotation mark takes two characters."""


@dataclass(frozen=True, slots=True)
class Text:
    """Bytes, about and at most."""

    about: int
    at_most: int

    def __add__(self, other: "Text") -> "Text":
        return Text(self.about + other.about, self.at_most + other.at_most)

    def __mul__(self, count: int) -> "Text":
        return Text(count * self.about, count * self.at_most)


NOTHING = Text(0, 0)


def raw(shown: Shown) -> int:
    """Bytes of a stage's arrays; of a summary those of its five measures."""
    width = cost.BYTES[shown.dtype]
    numbers = cost.answer_elements(shown.wanted, shown.lengths)
    return numbers * cost.stage_width(shown.wanted.name, width)


def nested(shown: Shown) -> Text:
    """Lists of numbers."""
    return Text(shown.json(), shown.json_at_most())


def base64(shown: Shown) -> Text:
    """Four characters for three bytes; each list of a summary has its dtype and shape."""
    if not shown.wanted.summary:
        return _with_nonfinite(shown, shown.around() + _base64(raw(shown)) + 2)
    shape = shown.shape[:-1]
    each = _PACKED + sum(len(str(length)) + 1 for length in shape)
    each += _base64(raw(shown) // len(SUMMARIES))
    return _exactly(shown.around() + len(SUMMARIES) * each)


def _base64(size: int) -> int:
    return 4 * -(-size // 3)


def safetensors(shown: Shown) -> Text:
    """The bytes themselves, an entry in the header, what is told of it in the header's text; a
    summary stays in that text."""
    if shown.wanted.summary:
        found = nested(shown)
        return Text(found.about + shown.around(), found.at_most + shown.around())
    name = len(shown.wanted.name)
    digits = sum(len(str(length)) + 1 for length in shown.shape)
    told = _ESCAPED * (shown.around() + _ENTRY + name) + _OFFSETS + name + digits
    return _with_nonfinite(shown, raw(shown) + told)


def lines(shown: Shown, piece: int, *, is_packed: bool) -> Text:
    """Lines of at most `piece` numbers each, or of a row; in each what is told of the stage."""
    found = base64(shown) if is_packed else nested(shown)
    beside = (line_count(shown, piece) - 1) * (shown.around() + 8) + _ENTRY + _ROWS
    return Text(found.about + beside, found.at_most + beside + _ROWS * line_count(shown, piece))


def line_count(shown: Shown, piece: int) -> int:
    """How many lines a stage takes."""
    *rows, width = shown.shape
    if shown.wanted.summary or prod(shown.shape) <= piece:
        return 1
    return -(-prod(rows) // max(1, piece // width))


def longest_line(shown: Shown, piece: int, *, is_packed: bool) -> int:
    """Bytes of the longest of them at most."""
    whole = lines(shown, piece, is_packed=is_packed).at_most
    if shown.wanted.summary:
        return whole
    of_piece = max(piece, shown.shape[-1])
    return min(whole, shown.around() + _ENTRY + _ROWS + 64 + of_piece * _of_a_number(shown))


def _of_a_number(shown: Shown) -> int:
    """More than a number takes in either encoding, with what `nonfinite` says of it."""
    return json_bytes.longest(shown.wanted, shown.lengths, shown.dtype) + 12


def _with_nonfinite(shown: Shown, size: int) -> Text:
    numbers = prod(shown.shape)
    if shown.wanted.stage.name == "ffn.experts":  # whole numbers
        return _exactly(size)
    return Text(size, size + numbers * len(f"[{numbers},1],"))


def _exactly(size: int) -> Text:
    return Text(size, size)
