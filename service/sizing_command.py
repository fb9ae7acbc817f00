"""`glassblock size`: a sizing request from words of the command line, and its answer as a table."""

import argparse
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import orjson

from schemas.model import ModelAsked
from schemas.presets import PRESETS
from service import errors
from service.sizing import sized
from service.state import State

SHORT: Mapping[str, str] = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp32": "float32",
    "fp64": "float64",
    "fp8": "float8",
}
"""What people write -> the name of a format."""

Request = dict[str, Any]

_MOST_NEAR = 5


def body(asked: argparse.Namespace, here: State) -> bytes:
    """The request as JSON."""
    model: dict[str, Any] = {_owner(asked.model, here): asked.model}
    request: Request = {"model": model}
    counts = {"tokens": asked.context, "batch": asked.batch}
    words = {key: _printable(count) for key, count in counts.items()}
    words["dtype"] = _format(asked.dtype)
    request |= {key: word for key, word in words.items() if word is not None}
    if asked.device is not None:
        request["device"] = {"name": asked.device}
    rows = _rows(model, here)
    if asked.context is not None and 0 < rows < asked.context:
        model["config"] = {"position": {"n_positions": asked.context}}
    return orjson.dumps(request)


def said(asked: argparse.Namespace) -> bool:
    """Whether the command line says anything that a request would."""
    words = (asked.context, asked.batch, asked.dtype, asked.device)
    return any(word is not None for word in words)


def notes(asked: argparse.Namespace, answer: Mapping[str, Any]) -> list[str]:
    """What was changed so that the answer could be given."""
    changed = "position.n_positions" in answer["model"]["overrides"]
    if not changed:
        return []
    return [
        f"{asked.model} learned fewer positions: sized with a table of {asked.context:,} rows "
        "(position.n_positions), which its parameters count."
    ]


def _owner(name: str, here: State) -> str:
    """Whether a name is a preset's or a model's; UnknownModel where it is neither."""
    if name in PRESETS:
        return "preset"
    if name not in here.store.names():
        near = get_close_matches(name, PRESETS, _MOST_NEAR)
        raise errors.UnknownModel(name, [*here.store.names(), *near])
    return "name"


def _printable(count: int | None) -> Any:  # noqa: ANN401 - a word of a request
    """A count that JSON can hold; what is out of bounds stays so."""
    return None if count is None else max(-1, min(count, 1 << 62))


def _format(word: str | None) -> str | None:
    """A format by its name, or as people write it; what is neither is refused by the request."""
    return None if word is None else SHORT.get(word.lower(), word.lower())


def _rows(model: Mapping[str, Any], here: State) -> int:
    """Rows of the model's own table of positions; 0 where it has none."""
    position = sized.of(ModelAsked.model_validate(model), here).config.position
    return position.n_positions if position.kind == "learned" else 0
