"""What a row of the catalogue holds. Read through `compute.stages`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from compute.config import ModelConfig

Library = Literal["transformer_lens", "huggingface", "nnsight", "interp_engine"]
LIBRARIES: tuple[Library, ...] = ("transformer_lens", "huggingface", "nnsight", "interp_engine")

Condition = Callable[[ModelConfig], bool]
Absence = Callable[[ModelConfig, bool], str | None]
"""(config, the input is tokens) -> why the stage does not exist, or None where it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """Another library's name of a stage, for the configs in which it means this stage."""

    library: Library
    name: str
    when: str
    holds: Condition = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One tensor of the trace: what it is called, its axes, its equation, when it exists.

    `symbol` is the article's; `symbol_when` says for which configs it means this stage.
    """

    name: str
    level: Literal["model", "block"]
    symbol: str | None
    symbol_when: str
    symbol_holds: Condition = field(repr=False)
    axes: tuple[str, ...]
    plain: str
    latex: str
    meaning: str
    exists: str
    absent: Absence = field(repr=False)
    aliases: tuple[Alias, ...]
    derived_from: tuple[str, ...]
    by_default: bool

    @property
    def derived(self) -> bool:
        """Computed from kept stages after the run; read-only."""
        return bool(self.derived_from)
