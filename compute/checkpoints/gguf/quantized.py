"""The types of a GGUF file's tensors: blocks of weights, and the bytes a block takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from compute.types import Array


@dataclass(frozen=True, slots=True)
class Kind:
    """A type by its name; `weights` of them lie in `bytes` bytes, a block."""

    name: str
    weights: int
    bytes: int


_BLOCKS: Mapping[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
    40: ("NVFP4", 64, 36),
}
KINDS: Mapping[int, Kind] = {number: Kind(*block) for number, block in _BLOCKS.items()}
"""A type's number in the file -> what is read."""

NUMBERS: Mapping[str, int] = {kind.name: number for number, kind in KINDS.items()}
"""A type's name -> its number."""

NOT_READ: Mapping[int, str] = {
    9: "Q8_1",
    15: "Q8_K",
    24: "I8",
    25: "I16",
    26: "I32",
    27: "I64",
    28: "F64",
    41: "Q1_0",
}
"""Types that hold no weights, or that nothing here can turn into numbers."""


def dequantized(raw: npt.NDArray[Any], kind: Kind) -> Array:
    """Numbers (rows, columns) in float32 from bytes (rows, bytes of a row)."""
    from gguf import GGMLQuantizationType, quants  # noqa: PLC0415 - a fifth of a second, for few

    number = GGMLQuantizationType(NUMBERS[kind.name])
    plain = {"F32": "<f4", "F16": "<f2"}.get(kind.name, "u1")
    with np.errstate(all="ignore"):  # infinite scales are found in what comes out
        values = quants.dequantize(raw.view(plain), number)
    return np.asarray(values, np.float32)
