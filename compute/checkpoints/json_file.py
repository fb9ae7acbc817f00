"""JSON files of a model folder, read strictly and within bounds."""

import json
from pathlib import Path

from compute.checkpoints.faults import refused

LARGEST_JSON = 1 << 20
"""Bytes of a config.json."""


def read_bytes(path: Path, most: int) -> bytes:
    """A whole file of at most `most` bytes."""
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise refused(path.name, f"{path.name} cannot be read.") from error
    if len(content) > most:
        raise refused(path.name, f"{path.name} has more than {most} bytes.", most)
    return content


def parsed_object(content: bytes, name: str) -> dict[str, object]:
    """JSON of one object: no key twice, no NaN or infinity, no nesting past Python's limit."""
    try:
        raw = json.loads(
            content.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_no_key_twice
        )
    except _Twice as error:
        raise refused(name, f"{name} has a key twice in one object.") from error
    except (ValueError, RecursionError) as error:
        raise refused(name, f"{name} is not JSON.") from error
    if not isinstance(raw, dict):
        raise refused(name, f"{name} is not an object.")
    return raw


class _Twice(ValueError):
    """A key stands twice in one object."""


def _no_constant(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _no_key_twice(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Twice
    return found
