"""The catalogue of stages, as answered."""

from typing import Literal

from pydantic import Field

from compute.stages import Library
from schemas.base import Answered


class AxisAnswered(Answered):
    """An axis: the letter of formulas and the word of JSON."""

    letter: str
    word: str


class AliasAnswered(Answered):
    """Another library's name of a stage."""

    library: Library
    name: str
    when: str = Field(description="The configs in which this name means this stage.")


class StageAnswered(Answered):
    """One tensor of the trace."""

    name: str = Field(description="Without the prefix blocks.{l}. of a block's stage.")
    level: Literal["model", "block"]
    symbol: str | None
    symbol_when: str | None = Field(description="The configs in which the symbol means this stage.")
    axes: list[str] = Field(description="Axis words; a request with a batch has `batch` in front.")
    plain: str = Field(description="The equation, as plain text.")
    latex: str = Field(description="The equation, as LaTeX.")
    meaning: str
    exists: str = Field(description="The configs that have this stage.")
    derived: bool = Field(description="Computed after the run from other stages; read-only.")
    derived_from: list[str]
    by_default: bool = Field(description="Part of an answer without `select`.")
    aliases: list[AliasAnswered]


class Catalogue(Answered):
    """Every stage in the order of computation, and the axes."""

    axes: list[AxisAnswered]
    stages: list[StageAnswered]
