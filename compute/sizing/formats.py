"""How numbers are stored: formats and their bits, and what caches and activations add."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Literal

from compute.sizing.vocabulary import Head, Kernel, Recompute

NumberFormat = Literal[
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "float8",
    "int8",
    "int4",
    "nf4",
    "mxfp4",
    "q8_0",
    "q6_k",
    "q5_k",
    "q5_1",
    "q5_0",
    "q4_k",
    "q4_1",
    "q4_0",
    "q3_k",
    "q2_k",
]


BITS: Mapping[str, Fraction] = MappingProxyType(
    {
        "float64": Fraction(64),
        "float32": Fraction(32),
        "float16": Fraction(16),
        "bfloat16": Fraction(16),
        "float8": Fraction(8),
        "int8": Fraction(8),
        "int4": Fraction(4),
        "nf4": Fraction(4),
        "mxfp4": Fraction(17, 4),
        "q8_0": Fraction(17, 2),
        "q6_k": Fraction(105, 16),
        "q5_k": Fraction(11, 2),
        "q5_1": Fraction(6),
        "q5_0": Fraction(11, 2),
        "q4_k": Fraction(9, 2),
        "q4_1": Fraction(5),
        "q4_0": Fraction(9, 2),
        "q3_k": Fraction(55, 16),
        "q2_k": Fraction(21, 8),
    }
)
"""Bits of one number, its share of the block's scales included (llama.cpp's q-formats, mxfp4)."""


FLOATS = ("float64", "float32", "float16", "bfloat16", "float8")
"""Formats that values which are computed are stored in; weights alone go into the others."""


def computed_in(name: NumberFormat) -> NumberFormat:
    """What caches are stored in where weights are in a format: itself, or float16 beside a
    format of weights alone."""
    return name if name in FLOATS else "float16"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """Numbers quantised in groups: each of `group` shares a scale, and a zero, of so many bits."""

    group: int = 0
    scale_bits: int = 16
    zero_bits: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How numbers are stored: a format's bits, and what groups add: bits + (scale + zero)/group."""

    name: NumberFormat = "bfloat16"
    grouped: Grouped = field(default_factory=Grouped)

    @property
    def bits(self) -> Fraction:
        """Bits of one number."""
        own = BITS[self.name]
        shared = self.grouped.scale_bits + self.grouped.zero_bits
        return own + Fraction(shared, self.grouped.group) if self.grouped.group else own


KeptRole = Literal["embeddings", "readout", "norms", "biases"]
"""Weights that may stay in a format of their own when the others are quantised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFormat:
    """How keys and values are stored: the format, and positions in a page (0: no pages)."""

    format: Format = field(default_factory=Format)
    page: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationFormat:
    """How activations are held: bytes of a number, and what a kernel and training keep of them.

    kernel: scores and pattern written out, or made and used piece by piece. dropout: on the
    pattern, on each sublayer's output and on the embedding. head: the positions that are read out;
    None: all in training and where no mask is causal, else the last.
    """

    bytes: int = 2
    kernel: Kernel = "materialised"
    dropout: bool = False
    recompute: Recompute = "none"
    head: Head | None = None
