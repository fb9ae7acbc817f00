"""How large the JSON of a trace's answer is, before it is run: about, and at most."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import orjson

from compute import config_json
from compute.config import ModelConfig
from compute.selection import Scene
from compute.sizing.tracing import identity_bytes

_KEYS = 1024
"""The keys of an answer, its digest, where weights came from, names of the model and its preset."""

_TOKEN = 192
"""Of the next token of a row: its keys, position, id and logit."""

_GIVEN = 12
"""A position id and its comma, or a token's type, at most."""

_MASKED = len("false,")


@dataclass(frozen=True, slots=True)
class Beside:
    """Bytes of all of an answer but its tensors, about and at most."""

    about: int
    at_most: int


def beside(scene: Scene, absent: Mapping[str, str]) -> Beside:
    """Of a trace without interventions, of weights that its request neither brings nor edits; the
    texts of a tokenizer's tokens and rows without a key come beside."""
    identities = identity_bytes.of(scene.config)
    told = config_bytes(scene.config) + _absent(absent)
    rows = scene.lengths.get("b", 1)
    return Beside(
        about=_KEYS // 2
        + told
        + identities.about
        + _read(scene, at_most=False)
        + rows * _TOKEN // 2,
        at_most=_KEYS + told + identities.at_most + _read(scene, at_most=True) + rows * _TOKEN,
    )


@lru_cache(maxsize=64)
def config_bytes(config: ModelConfig) -> int:
    """Of a config as an answer tells it."""
    return len(orjson.dumps(config_json.as_json(config)))


def _absent(absent: Mapping[str, str]) -> int:
    return len(orjson.dumps(absent))


def _read(scene: Scene, *, at_most: bool) -> int:
    """The input and the memory as read: ids, positions, a mask."""
    return sum(_rows_read(*rows, at_most=at_most) for rows in _rows(scene))


def _rows(scene: Scene) -> Iterator[tuple[int, int, int]]:
    """(sequences, positions, characters of a token's id or 0) of what is read."""
    batch, digits = scene.lengths.get("b", 1), len(str(scene.config.vocab or 0))
    yield batch, scene.lengths["n"], digits * scene.tokens
    if scene.lengths["s"]:
        yield batch, scene.lengths["s"], digits * scene.memory_tokens


def _rows_read(batch: int, positions: int, digits: int, *, at_most: bool) -> int:
    ids = digits + 1 if digits else 0
    places = _GIVEN if at_most else len(str(positions)) + 1
    others = _MASKED + _GIVEN + len("null,") if at_most else 0
    lists = 2 * (batch + 1) * (5 if at_most else 2)
    return batch * positions * (ids + places + others) + lists
