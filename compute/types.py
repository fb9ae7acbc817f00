"""The words every layer shares: arrays, equations, axes.

Axis letters are used in code and docs, axis words in JSON; `AXES` is the glossary.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Union

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating[Any]]
"""A floating point array; float32 and float64 are the dtypes in use."""

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

DType = Literal["float32", "float64"]

Value = npt.NDArray[Any]
"""A stage's value: floating point, but for chosen experts, which are whole numbers."""

Equations = Generator[tuple[str, Value], Value, Array]
"""An equation: yields (stage name, value), goes on with what is sent back, returns its result."""

QueriesAndKeys = Generator[tuple[str, Value], Value, tuple[Array, Array]]
"""An equation whose result is queries (..., h, n, k) and keys (..., g, m, k)."""

AXES: Mapping[str, str] = {
    "b": "batch",
    "n": "position",
    "m": "key_position",
    "d": "d_model",
    "h": "head",
    "g": "kv_head",
    "k": "d_head",
    "v": "d_value",
    "f": "d_ff",
    "e": "expert",
    "c": "choice",
    "u": "d_shared",
    "s": "source_position",
    "t": "token_type",
    "r": "bucket",
    "p": "d_mlm_head",
    "V": "vocabulary",
    "1": "1",
}
"""Axis letter -> axis word. `1` is an axis of length one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inputs:
    """What a run reads: one of `tensor` and `token_ids`, and where and what it may attend to.

    tensor (n, d) or (b, n, d); token_ids (n) or (b, n). position_ids and key_mask (n) or (b, n),
    attention_mask (n, m) or (b, n, m); without their batch axis they serve every row of a batch.
    In both masks true = may be attended. token_types (n) or (b, n), 0 where left out. `memory` is
    what cross-attention reads: an encoder's input, or without an encoder the rows themselves.
    """

    tensor: Array | None = None
    token_ids: Ints | None = None
    position_ids: Ints | None = None
    key_mask: Bools | None = None
    attention_mask: Bools | None = None
    token_types: Ints | None = None
    memory: Union["Inputs", None] = None

    @property
    def shape(self) -> tuple[int, ...]:
        """(n) or (b, n)."""
        if self.tensor is not None:
            return self.tensor.shape[:-1]
        return () if self.token_ids is None else self.token_ids.shape

    @property
    def positions(self) -> int:
        """n."""
        return self.shape[-1]

    @property
    def batch(self) -> int | None:
        """b, or None where the input has no batch axis."""
        return self.shape[0] if len(self.shape) == 2 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """A stage asked for: a name, alias or pattern, which indices of which axes, data or summary."""

    name: str
    where: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    summary: bool = False


EditOp = Literal["scale", "add", "set", "zero"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edit:
    """A change of a slice of one weight: axis word -> indices, all of an axis left out."""

    tensor: str
    op: EditOp
    where: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    value: float | Array = 0.0
