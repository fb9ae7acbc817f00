"""The words of sizing: what can be asked, units, conventions, workloads, number formats.

Conventions are where published numbers part: a count of FLOPs means nothing without them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal

Ask = Literal[
    "parameters",
    "flops",
    "kv_cache",
    "weights",
    "activations",
    "trace",
    "training",
    "roofline",
    "crossovers",
    "sensitivity",
]
Kind = Literal["exact", "lower_bound", "upper_bound", "estimate"]
"""exact: to the unit, under what is said; a bound: never beyond it; estimate: with its error."""

Unit = Literal["parameters", "FLOP", "MAC", "bytes", "elements", "seconds", "tokens", "sequences"]

Causal = Literal["exact", "full", "half"]
Head = Literal["all", "last", "none"]
Lookup = Literal["free", "matmul"]
Elementwise = Literal["none", "counted"]
Recompute = Literal["none", "selective", "full"]
Kernel = Literal["materialised", "flash"]
Mla = Literal["expanded", "absorbed"]
ConventionPreset = Literal["exact", "kaplan", "chinchilla", "palm", "megatron", "mfu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conventions:
    """How operations are counted.

    multiply_add: 2 FLOP, or 1 (MACs). causal: the pairs a causal block counts: exact, Σ of visible
    ones, windows and all; full, every query with every key; half, half of full. head: the positions
    that are read out; None: all, and in generation the last of the prompt. embedding_lookup: free,
    or counted as a product with V rows. elementwise, bias_adds: counted or not. backward_factor:
    backward ÷ forward. recompute, attention_kernel: in training. mla: keys and values of latent
    attention made in full, or W_UK and W_UV absorbed into queries and outputs.
    """

    multiply_add: Literal[1, 2] = 2
    causal: Causal = "exact"
    head: Head | None = None
    embedding_lookup: Lookup = "free"
    elementwise: Elementwise = "none"
    bias_adds: bool = False
    backward_factor: int = 2
    recompute: Recompute = "none"
    attention_kernel: Kernel = "materialised"
    mla: Mla = "expanded"


PRESETS: Mapping[ConventionPreset, Conventions] = MappingProxyType(
    {
        "exact": Conventions(),
        "kaplan": Conventions(causal="half", head="none"),
        "chinchilla": Conventions(causal="full", head="all", embedding_lookup="matmul"),
        "palm": Conventions(causal="full", head="all"),
        "megatron": Conventions(causal="half", head="all"),
        "mfu": Conventions(causal="full", head="all"),
    }
)
"""How others count; each by the products it counts, all with backward = 2 forward.

kaplan: 2 N + 2·L·n·h·k a token, N without embeddings and readout: pairs by half (arXiv:2001.08361,
Table 1). chinchilla: every pair, and the table as a product at both ends; its softmax, 3 a pair
and head, is left out here (arXiv:2203.15556, appendix F). palm, and mfu, which it defines: every
pair, no recomputation (arXiv:2204.02311, appendix B). megatron: pairs by half, as Megatron-LM's
own counter has it by now; its paper counts every pair (arXiv:2104.04473, appendix).
"""


def conventions_of(preset: ConventionPreset, overrides: Mapping[str, Any]) -> Conventions:
    """A preset's conventions, with the fields that are said otherwise."""
    return replace(PRESETS[preset], **overrides)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is run: `batch` sequences of `tokens` new positions behind `cached` ones; `source`
    positions of an encoder's memory; `new` tokens generated after them (0: none)."""

    batch: int = 1
    tokens: int = 1
    cached: int = 0
    source: int = 0
    new: int = 0


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


Optimizer = Literal[
    "mixed_adam",
    "mixed_adam_fp32_grads",
    "mixed_adam_8bit",
    "fp32_adam",
    "fp32_momentum",
    "fp32_sgd",
]
ZeroStage = Literal[0, 1, 2, 3]
"""What ranks divide among them: 1 what the optimizer remembers, 2 gradients too, 3 weights too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Peak FLOP a second (dense), bytes a second, bytes of memory; and where the numbers are from.

    Factors of efficiency, 1 where nothing is said: then a time is a lower bound.
    """

    name: str
    flops_per_second: int
    bytes_per_second: int
    memory_bytes: int | None = None
    flops_efficiency: float = 1.0
    bytes_efficiency: float = 1.0
    source: str = ""
