"""Bytes of weights as asked for and as answered."""

from typing import Annotated, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from compute.sizing.formats import Format, Grouped, KeptRole, NumberFormat
from schemas.base import Asked
from schemas.sizing.ledger import Amount, LedgerAnswer, SymbolAnswer

_MOST_BITS = 64
_LARGEST_GROUP = 1 << 20
_OWN_SCALES = ("q", "mxfp")

Bits = Annotated[int, Field(ge=0, le=_MOST_BITS)]


class Grouping(Asked):
    """Numbers that share a scale: each takes (scale_bits + zero_bits) / group bits more."""

    group: Annotated[int, Field(ge=1, le=_LARGEST_GROUP)] = Field(
        description="Numbers that share one."
    )
    scale_bits: Bits = Field(default=16, description="Bits of a group's scale.")
    zero_bits: Bits = Field(default=0, description="Bits of its zero; 0: there is none.")

    def of(self, dtype: NumberFormat) -> Format:
        """The format of numbers of a dtype in such groups."""
        grouped = Grouped(group=self.group, scale_bits=self.scale_bits, zero_bits=self.zero_bits)
        return Format(name=dtype, grouped=grouped)


def ungrouped_by_itself(dtype: NumberFormat | None, grouped: Grouping | None) -> None:
    """Refuse groups of numbers whose format counts its own scales, or is not said beside them."""
    if grouped is not None and (dtype is None or dtype.startswith(_OWN_SCALES)):
        rule = "grouped goes with a dtype beside it that has no scales of its own."
        raise PydanticCustomError("grouped", "{rule}", {"rule": rule, "got": dtype})


class FormatAsked(Asked):
    """How weights are stored: all in one format, but for the roles that are kept in another."""

    dtype: NumberFormat = Field(
        description="Of each number. The q formats and mxfp4 count their own scales."
    )
    grouped: Grouping | None = Field(
        default=None, description="Numbers in groups that share a scale. null: none."
    )
    keep: Annotated[list[KeptRole], Field(max_length=4)] = Field(
        default=[],
        description="Roles that stay in keep_dtype: embeddings (tables, a tied readout too), "
        "readout (the matrix of an untied one), norms, biases (sinks too). Default: none.",
    )
    keep_dtype: NumberFormat = Field(default="float16", description="Of the roles that stay.")

    @model_validator(mode="after")
    def _says_once(self) -> Self:
        ungrouped_by_itself(self.dtype, self.grouped)
        if len({*self.keep}) != len(self.keep):
            rule = "keep names the same role twice."
            raise PydanticCustomError("keep", "{rule}", {"rule": rule})
        return self

    def to_compute(self) -> Format:
        """The format of what is not kept in another."""
        return self.grouped.of(self.dtype) if self.grouped else Format(name=self.dtype)


class WeightBytesAnswer(LedgerAnswer):
    """Bytes of a model's weights, shared ones once."""

    dtype: Annotated[NumberFormat, Field(description="Of each number that is not kept.")]
    bits: Annotated[str, Field(description="Bits of such a number, its share of scales included.")]
    keep: Annotated[list[KeptRole], Field(description="Roles that stay in keep_dtype.")]
    keep_dtype: Annotated[NumberFormat, Field(description="Of the roles that stay.")]
    kept: Annotated[Amount, Field(description="The sum of the parts that stay.")]
    symbols: Annotated[list[SymbolAnswer], Field(description="Letters of these formulas alone.")]
    notes: Annotated[list[str], Field(description="The rules that the numbers follow.")]
    excluded: Annotated[list[str], Field(description="What is not counted.")]
