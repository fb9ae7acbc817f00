"""A preset: a shape by name, as a request would write it, without its trained weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from schemas.config import ConfigAsked

Written = Mapping[str, Any]
"""A config, or a part of one, as a request writes it in JSON."""

NOTHING: Written = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Preset:
    """A shape: its name, what it is and what it leaves out, where its numbers are from.

    `published`: the count of its parameters that was found published, where one was.
    """

    name: str
    meaning: str
    source: str
    written: Written
    published: int | None = None

    @property
    def config(self) -> ConfigAsked:
        """The config, as a request that was read; it is read once."""
        return _read(self)


@cache
def _read(preset: Preset) -> ConfigAsked:
    return ConfigAsked.model_validate(dict(preset.written))
