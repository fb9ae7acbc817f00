"""The words of sizing: what can be asked, units, conventions, workloads, number formats.

Conventions are where published numbers part: a count of FLOPs means nothing without them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
