"""Bytes as JSON, strictly, and what is wrong with those that are none: told, never quoted."""

import re

import jiter

from service import errors

_NOT_JSON = "The body is not JSON:"
_RULES = {
    "Detected duplicate key": "A key stands twice in one object, near",
    "recursion limit exceeded": "The body is nested too deep, at",
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


def load(body: bytes) -> object:
    """The body as JSON; MalformedJson says where it stops being JSON and quotes nothing."""
    try:
        return jiter.from_json(
            body, allow_inf_nan=False, cache_mode="none", catch_duplicate_keys=True
        )
    except ValueError as error:
        raise errors.MalformedJson(_what_is_wrong(body, str(error))) from None


def _what_is_wrong(body: bytes, found: str) -> str:
    if not body.strip():
        return "The body is empty."
    if body.startswith(b"\xef\xbb\xbf"):
        return "The body begins with a byte order mark; leave it out."
    try:
        body.decode()
    except UnicodeDecodeError as not_text:
        return f"The body is not UTF-8: byte {not_text.start} begins no character."
    rule = next((words for sign, words in _RULES.items() if found.startswith(sign)), "")
    place = _PLACE.search(found)
    if place is None:
        return f"{rule or _NOT_JSON}."
    hint = "" if rule else _hint(body, int(place[1]), int(place[2]))
    return f"{rule or _NOT_JSON} line {place[1]}, column {place[2]}{hint}."


def _hint(body: bytes, line: int, column: int) -> str:
    """What JSON has in the place of what stands there, if that is a habit of other languages."""
    rest = body.split(b"\n", line)[line - 1][column - 1 :]
    habit = next((words for sign, words in _HABITS.items() if rest.startswith(sign)), "")
    return f" ({habit})" if habit else ""
