"""Faults of a model folder: each at a file, or at a key or tensor of one."""

from collections.abc import Iterable
from difflib import get_close_matches

from compute.errors import Fault, ModelError, Place

CODE = "model_folder"


def fault(place: str | Place, detail: str, expected: object = None, got: object = None) -> Fault:
    """A fault at a file, or at (file, key, …)."""
    where = (place,) if isinstance(place, str) else place
    return Fault(code=CODE, detail=detail, place=where, expected=expected, got=got)


def refused(
    place: str | Place, detail: str, expected: object = None, got: object = None
) -> ModelError:
    """A ModelError of one fault."""
    return ModelError([fault(place, detail, expected, got)])


LONGEST_SHOWN = 100


def shown(value: object) -> str:
    """A value out of a file as a message shows it: escaped, cut."""
    text = ascii(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


def nearest(name: str, names: Iterable[str]) -> str:
    """What to add to a refusal of a mistyped name: the one that it is nearest to, or nothing."""
    close = get_close_matches(name[:LONGEST_SHOWN], list(names), n=1)
    return f" Nearest: {close[0]}." if close else ""
