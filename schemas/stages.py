"""The catalogue of stages, as answered."""

from typing import Annotated, Literal

from pydantic import Field

from compute.stages import Library
from schemas.base import Answered


class AxisAnswered(Answered):
    """An axis: the letter of formulas and the word of JSON."""

    letter: Annotated[str, Field(description="In formulas.")]
    word: Annotated[str, Field(description="In JSON.")]


class AliasAnswered(Answered):
    """Another library's name of a stage."""

    library: Annotated[Library, Field(description="Whose name it is.")]
    name: Annotated[str, Field(description="The name.")]
    when: str = Field(description="The configs in which this name means this stage.")


class StageAnswered(Answered):
    """One tensor of the trace."""

    name: str = Field(
        description="Without the prefix blocks.{l}. of a block's stage; an encoder's stages have "
        "encoder. before it all: encoder.blocks.0.attn.z."
    )
    level: Annotated[
        Literal["model", "block"], Field(description="Of the model, or of each block.")
    ]
    symbol: Annotated[str | None, Field(description="The article's symbol.")]
    symbol_when: str | None = Field(description="The configs in which the symbol means this stage.")
    axes: list[str] = Field(description="Axis words; a request with a batch has `batch` in front.")
    plain: str = Field(
        description="The equation, as plain text; behind it in brackets what differs in some "
        "arrangements."
    )
    latex: str = Field(description="The equation alone, as LaTeX.")
    meaning: Annotated[str, Field(description="What it is, in a sentence.")]
    exists: str = Field(description="The configs that have this stage.")
    derived: bool = Field(description="Computed after the run from other stages; read-only.")
    derived_from: Annotated[list[str], Field(description="The stages it is computed from.")]
    by_default: bool = Field(description="Part of an answer without `select`.")
    aliases: Annotated[list[AliasAnswered], Field(description="Other libraries' names.")]


class Catalogue(Answered):
    """Every stage in the order of computation, and the axes.

    A model with an encoder has the stages twice: the encoder's with the prefix encoder. before all.
    """

    axes: Annotated[
        list[AxisAnswered],
        Field(description="Letter and word of each axis of a stage; weights have some more."),
    ]
    stages: Annotated[list[StageAnswered], Field(description="Each stage.")]
