"""Bytes as JSON, strictly, and what is wrong with those that are none: told, never quoted."""

import re

import jiter
import numpy as np

from schemas.problems import Advice
from service import errors, limits
from service.settings import Settings

Bytes = bytes | bytearray | memoryview

_COUNTED = {"body_lists": (b"[{", 2), "body_keys": (b":", 4), "body_values": (b",", 2)}
"""Limit -> the marks that begin what it bounds (those inside a string count too), and how many
bytes one of them takes at least: a shorter text is not looked through."""

_BLOCK = 1 << 18  # bytes that stay in the cache while they are looked at

_ADVICE: Advice = {
    "text": "Send a large tensor as base64: an object of dtype, shape and data in its place; or "
    "the whole body as application/vnd.safetensors."
}
_RULES = {
    "Detected duplicate key": "A key stands twice in one object, near",
    "recursion limit exceeded": "{what} is nested too deep, at",
    "number out of range": "A number has too many digits, at",
}
"""How the parser's message begins -> what a client is told; the message itself may quote."""

_PLACE = re.compile(r"at line (\d+) column (\d+)$")
_HABITS = {
    b"NaN": "NaN is no number there",
    b"Infinity": "Infinity is no number there",
    b"True": "it writes true, false and null",
    b"False": "it writes true, false and null",
    b"None": "it writes true, false and null",
    b"undefined": "it writes null",
    b"'": 'its strings begin and end with "',
    b"//": "it has no comments",
    b"/*": "it has no comments",
    b"#": "it has no comments",
    b",": "there is a comma too many",
    b"]": "a comma before it is too many, or a value is missing",
    b"}": "a comma before it is too many, or a value is missing",
}
"""What other languages write, where it stops being JSON -> what JSON has."""


def refuse_too_many(text: Bytes, settings: Settings) -> None:
    """Raise TooLarge for JSON of more bytes, lists and objects, keys or values than the limits:
    counted before anything is made of it."""
    limits.check("body_bytes", len(text), settings)
    for name, (marks, size) in _COUNTED.items():
        if len(text) > size * getattr(settings, name):
            limits.check(name, _count(text, marks), settings, advice=_ADVICE)


def _count(text: Bytes, marks: bytes) -> int:
    """How many of the bytes are one of the marks."""
    whole = np.frombuffer(text, np.uint8)
    blocks = (whole[start : start + _BLOCK] for start in range(0, len(whole), _BLOCK))
    return sum(int(np.count_nonzero(block == mark)) for block in blocks for mark in marks)


def load(text: bytes, what: str = "The body") -> object:
    """Some bytes as JSON; MalformedJson says where they stop being JSON and quotes nothing.

    what: what is read, in words, as a sentence begins with it.
    """
    try:
        return jiter.from_json(
            text, allow_inf_nan=False, cache_mode="none", catch_duplicate_keys=True
        )
    except ValueError as error:
        raise errors.MalformedJson(_what_is_wrong(text, str(error), what)) from None


def _what_is_wrong(text: bytes, found: str, what: str) -> str:
    if not text.strip():
        return f"{what} is empty."
    if text.startswith(b"\xef\xbb\xbf"):
        return f"{what} begins with a byte order mark; leave it out."
    try:
        text.decode()
    except UnicodeDecodeError as not_text:
        return f"{what} is not UTF-8: byte {not_text.start} begins no character."
    rule = next((words for sign, words in _RULES.items() if found.startswith(sign)), "")
    told = rule.format(what=what) if rule else f"{what} is not JSON:"
    place = _PLACE.search(found)
    if place is None:
        return f"{told}."
    hint = "" if rule else _hint(text, int(place[1]), int(place[2]))
    return f"{told} line {place[1]}, column {place[2]}{hint}."


def _hint(text: bytes, line: int, column: int) -> str:
    """What JSON has in the place of what stands there, if that is a habit of other languages."""
    rest = text.split(b"\n", line)[line - 1][column - 1 :]
    habit = next((words for sign, words in _HABITS.items() if rest.startswith(sign)), "")
    return f" ({habit})" if habit else ""
