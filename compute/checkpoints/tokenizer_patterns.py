"""How long a pattern may take on a text at worst, told before it is compiled.

A pattern tries its alternatives at every character, and within one it may try again for every
choice: n ways for a repeated part, two for an optional one or for an alternative in a group. What
ends an alternative never fails, so nothing is tried again for it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from compute.checkpoints.gguf.splits import SPLITS

LONGEST_PATTERN = 1024
"""Characters of a pattern."""

MOST_STEPS = 1 << 28
"""About a second or two."""

_LONGEST_COUNT = 64
_QUOTES = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASES = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+",
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*",
)
_PUNCTUATION = r"!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~"

PUBLISHED = frozenset(
    {
        *(pattern for patterns in SPLITS.values() for pattern in patterns),
        *(_GPT2 + r"|\s+", r"\p{N}{1,3}", r"\p{N}", r"\d", r"\d+", r"\p{N}+", r"\s+", r" {2,}"),
        *(
            rf"{_QUOTES}|{_WORDS}|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_REST}"
            for digits in (r"\p{N}{1,3}", r"\p{N}", r"\p{N}{1,2}")
        ),
        rf"{_QUOTES}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
        rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_REST}",
        rf"{_CASES[0]}{_QUOTES}?|{_CASES[1]}{_QUOTES}?"
        rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_REST}",
        rf"{_CASES[0]}|{_CASES[1]}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_REST}",
        rf"[{_PUNCTUATION}][A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+"
        rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_REST}",
        r" ?[^(\s|[.,!?…。，、।۔،])]+",
        r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
        r"[一-龥぀-ゟ゠-ヿ]+",
        *(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+"),
    }
)
"""Patterns of published models; each of them takes a time linear in the text."""

_GROUP = re.compile(r"\((?:\?(?:[:>=!]|i:))?(?!\?)")
_ESCAPE = re.compile(r"\\(?:[pP]\{\^?\w+\}|x\{[0-9A-Fa-f]{1,6}\}|[sSdDwWrntbBhHuxAzZ]|[^\w\s]|\s)")
_COUNT = re.compile(r"\{(\d*)(,?)(\d*)\}")


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of an alternative: repeated parts in it, other choices, whether it may be left out,
    and whether it is one atom, repeated at most."""

    repeats: int = 0
    choices: int = 0
    optional: bool = False
    atom: bool = True


class UnsafeError(ValueError):
    """A pattern that is not read, and why."""


def longest_text(patterns: list[str], most: int) -> int:
    """How long a text may be, at most `most`, for all patterns to end soon; an UnsafeError for one
    that is not read at all."""
    unknown = [pattern for pattern in patterns if pattern not in PUBLISHED]
    parts = [x for pattern in unknown for x in _costs(pattern)]
    while most and most * sum(most**repeats << choices for repeats, choices in parts) > MOST_STEPS:
        most //= 2
    return most


def _costs(pattern: str) -> Iterator[tuple[int, int]]:
    """(repeated parts, choices) of each alternative, without what ends it."""
    if len(pattern) > LONGEST_PATTERN:
        raise UnsafeError(f"has a pattern of more than {LONGEST_PATTERN} characters.")
    alternatives, end = _read(pattern, 0)
    if end < len(pattern):
        raise UnsafeError("has a pattern whose brackets do not match.")
    for parts in alternatives:
        while parts and parts[-1].optional:
            last = parts.pop()
            if not last.atom:
                yield last.repeats, min(last.choices, 64)
        if parts and parts[-1].atom:
            parts.pop()
        yield sum(x.repeats for x in parts), min(sum(x.choices for x in parts), 64)


def _read(pattern: str, at: int) -> tuple[list[list[_Part]], int]:
    """The alternatives from a place to the end of their group, and where that is."""
    alternatives: list[list[_Part]] = [[]]
    while at < len(pattern) and pattern[at] != ")":
        if pattern[at] == "|":
            alternatives.append([])
            at += 1
            continue
        part, at = _part(pattern, at)
        alternatives[-1].append(part)
    return alternatives, at


def _part(pattern: str, at: int) -> tuple[_Part, int]:
    if pattern[at] != "(":
        return _repeated(pattern, _atom_end(pattern, at), _Part())
    opened = _GROUP.match(pattern, at)
    if opened is None:
        raise UnsafeError("has a pattern with a group of a kind that is not read.")
    if pattern.count("(", 0, at) > 32:
        raise UnsafeError("has a pattern of more than 32 groups.")
    alternatives, end = _read(pattern, opened.end())
    if end >= len(pattern):
        raise UnsafeError("has a pattern whose brackets do not match.")
    repeats = max(sum(x.repeats for x in parts) for parts in alternatives)
    choices = max(sum(x.choices for x in parts) for parts in alternatives)
    group = _Part(repeats, choices + (len(alternatives) - 1).bit_length(), atom=False)
    return _repeated(pattern, end + 1, group)


def _repeated(pattern: str, at: int, part: _Part) -> tuple[_Part, int]:
    """A part with what says how often it comes."""
    count = _COUNT.match(pattern, at)
    sign = pattern[at : at + 1]
    if count is not None:
        if max(int(x or "0") for x in (count[1][:9], count[3][:9])) > _LONGEST_COUNT:
            raise UnsafeError(f"has a pattern that counts beyond {_LONGEST_COUNT}.")
        at = count.end()
    elif sign and sign in "?*+":
        at += 1
    else:
        return part, at
    if not part.atom and sign != "?":
        raise UnsafeError("has a pattern that repeats a group.")
    at += pattern[at : at + 1] == "?"  # as few as may be
    if pattern[at : at + 1] in ("?", "*", "+") or _COUNT.match(pattern, at):
        raise UnsafeError("has a pattern that repeats what is repeated.")
    if sign == "?":
        return _Part(part.repeats, part.choices + 1, True, part.atom), at
    fixed = count is not None and (not count[2] or count[1] == count[3])
    none = sign == "*" or (count is not None and count[1] in ("", "0"))
    return _Part(0 if fixed else 1, 0, none, part.atom), at


def _atom_end(pattern: str, at: int) -> int:
    """Where a character, an escape or a class ends."""
    if pattern[at] == "\\":
        escape = _ESCAPE.match(pattern, at)
        if escape is None:
            raise UnsafeError(f"has a pattern with {pattern[at : at + 2]}, which is not read.")
        return escape.end()
    if pattern[at] != "[":
        if pattern[at] in "?*+":
            raise UnsafeError("has a pattern that repeats nothing.")
        return at + 1
    return _class_end(pattern, at)


def _class_end(pattern: str, at: int) -> int:
    """Where a class ends, which may hold classes; a ] that comes first stands for itself."""
    depth, begun = 0, at
    while at < len(pattern):
        if pattern[at] == "[":
            depth += 1
            at += 1 + (pattern[at + 1 : at + 2] == "^")
            if pattern[at : at + 1] == "]":
                raise UnsafeError("has a pattern with an empty class.")
            continue
        if pattern[at] == "]":
            depth -= 1
            if not depth:
                return at + 1
        at += 1 + (pattern[at] == "\\")
    raise UnsafeError(f"has a pattern whose class at {begun} does not end.")
