"""What requests and answers cost over what is computed: in process, the real application."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import checkpoint
from benchmarks.paired import Effort, Measured, Side, ratio
from benchmarks.sides import kept, requests

_ASGI, _PARSING = "benchmarks.sides.over_asgi", "benchmarks.sides.parsing"


@contextmanager
def models(*names: str) -> Iterator[str]:
    """A folder with the models named: small, large (one block) and deep (twelve)."""
    layers = {"small": 1, "large": 1, "deep": 12}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            sizes = kept.SMALL if name == "small" else kept.LARGE
            checkpoint.write(Path(folder) / name, sizes, layers=layers[name], positions=2048)
        yield folder


def small(effort: Effort) -> Measured:
    """A small request over ASGI, all stages."""
    with models("small") as folder:
        ours = Side(factory=f"{_ASGI}:small", arguments={"models": folder})
        return ratio(ours, Side(factory=f"{_ASGI}:small_parts"), effort)


def json_answer(effort: Effort) -> Measured:
    """Patterns and contributions as JSON."""
    return _wide("application/json", effort, copied=False)


def safetensors_answer(effort: Effort) -> Measured:
    """Patterns and contributions as one safetensors body."""
    return _wide(requests.SAFETENSORS, effort, copied=True)


def _wide(accept: str, effort: Effort, *, copied: bool) -> Measured:
    with models("large") as folder:
        ours = Side(factory=f"{_ASGI}:wide", arguments={"models": folder, "accept": accept})
        other = Side(factory=f"{_ASGI}:wide_parts", arguments={"copied": copied})
        return ratio(ours, other, effort)


def json_parse(effort: Effort) -> Measured:
    """A JSON input."""
    return _parsed(effort, packed=False)


def base64_parse(effort: Effort) -> Measured:
    """A base64 input, over the JSON one's plain parse."""
    return _parsed(effort, packed=True)


def _parsed(effort: Effort, *, packed: bool) -> Measured:
    ours = Side(factory=f"{_PARSING}:strict", arguments={"packed": packed})
    return ratio(ours, Side(factory=f"{_PARSING}:plain"), effort)


MEASURES = {
    "asgi-small": small,
    "json-answer": json_answer,
    "safetensors-answer": safetensors_answer,
    "json-parse": json_parse,
    "base64-parse": base64_parse,
}
"""Bar -> how it is measured."""
