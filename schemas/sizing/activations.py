"""Activations as asked for and as answered: the peak of a pass, and what training keeps."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from compute.sizing.formats import ActivationFormat, NumberFormat
from compute.sizing.vocabulary import Head, Kernel, Recompute
from schemas.base import Asked
from schemas.sizing.ledger import Amount, LedgerAnswer, SymbolAnswer

ActivationDtype = Literal["float64", "float32", "float16", "bfloat16", "float8"]

_BYTES: dict[NumberFormat, int] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float8": 1,
}


class ActivationsAsked(Asked):
    """How activations are held."""

    dtype: ActivationDtype | None = Field(
        default=None,
        description="Of each number. Default: the request's dtype, or float16 where that is an "
        "integer's or a quantised one.",
    )
    kernel: Kernel | None = Field(
        default=None,
        description="Scores and pattern written out, or flash. Default: as in conventions.",
    )
    dropout: bool = Field(
        default=False,
        description="In training: on patterns, on sublayers' outputs, on the embedding.",
    )
    recompute: Recompute | None = Field(
        default=None, description="In training. Default: as in conventions."
    )
    readout: Head | None = Field(
        default=None,
        description="Positions that are read out. Default: all in training and without a causal "
        "mask, else the last.",
    )

    def to_compute(
        self, dtype: NumberFormat, kernel: Kernel, recompute: Recompute
    ) -> ActivationFormat:
        """The form; the arguments: what the request says elsewhere."""
        return ActivationFormat(
            bytes=_BYTES.get(self.dtype or dtype, _BYTES["float16"]),
            kernel=self.kernel or kernel,
            dropout=self.dropout,
            recompute=self.recompute or recompute,
            head=self.readout,
        )


class MomentAnswer(LedgerAnswer):
    """Everything that is live while one sublayer runs."""

    id: Annotated[str, Field(description="The sublayer, or unembed.")]


class PeakAnswer(LedgerAnswer):
    """The moment of a pass that holds most, and the others."""

    moment: Annotated[str, Field(description="The moment that the parts are of.")]
    moments: Annotated[list[MomentAnswer], Field(description="Each in order; of all blocks one.")]


class BlockKeptAnswer(LedgerAnswer):
    """What one block keeps until its backward pass."""

    id: Annotated[str, Field(description="blocks, encoder.blocks, or a mixture's dense blocks.")]
    count: Annotated[int, Field(description="How many there are.")]


class TrainingActivationsAnswer(LedgerAnswer):
    """What a training step holds at its height."""

    live: Annotated[Amount, Field(description="Of the total: made again, for one block.")]
    per_block: Annotated[list[BlockKeptAnswer], Field(description="One block of each kind.")]


class ActivationsAnswer(TypedDict):
    """Bytes of activations, without weights and cache."""

    bytes_per_number: Annotated[int, Field(description="a.")]
    kernel: Annotated[Kernel, Field(description="Of attention.")]
    dropout: Annotated[bool, Field(description="In training.")]
    recompute: Annotated[Recompute, Field(description="In training.")]
    inference: Annotated[PeakAnswer, Field(description="A pass over tokens positions.")]
    decode: Annotated[
        PeakAnswer | None,
        Field(description="A pass over one more position; null where nothing is cached."),
    ]
    training: Annotated[TrainingActivationsAnswer, Field(description="A step over tokens.")]
    symbols: Annotated[list[SymbolAnswer], Field(description="Letters of these formulas alone.")]
    notes: Annotated[list[str], Field(description="The rules that the numbers follow.")]
    excluded: Annotated[list[str], Field(description="What is not counted.")]
