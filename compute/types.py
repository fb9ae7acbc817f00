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
class Past:
    """What earlier rows left behind, so that later ones attend to them without a second run.

    keys (g, c, k) and values (g, c, v) of each block, as projected: before qk-norm and rotation;
    or (b, g, c, …). None of them where no block attends. position_ids and key_mask (c) or (b, c).
    """

    keys: tuple[Array, ...]
    values: tuple[Array, ...]
    position_ids: Ints
    key_mask: Bools | None = None

    @property
    def positions(self) -> int:
        """c."""
        return self.position_ids.shape[-1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inputs:
    """What a run reads: one of `tensor` and `token_ids`, and where and what it may attend to.

    tensor (n, d) or (b, n, d); token_ids (n) or (b, n). position_ids and key_mask (n) or (b, n),
    attention_mask (n, m) or (b, n, m); without their batch axis they serve every row of a batch.
    In both masks true = may be attended. token_types (n) or (b, n), 0 where left out. `memory` is
    what cross-attention reads: an encoder's input, or without an encoder the rows themselves.
    `past` is what stands before the rows: all but attention_mask, whose m counts it, are of the
    new rows alone.
    """

    tensor: Array | None = None
    token_ids: Ints | None = None
    position_ids: Ints | None = None
    key_mask: Bools | None = None
    attention_mask: Bools | None = None
    token_types: Ints | None = None
    memory: Union["Inputs", None] = None
    past: Past | None = None

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
    def keys(self) -> int:
        """m: the rows, and those of the past before them."""
        return self.positions + (0 if self.past is None else self.past.positions)

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


InterventionOp = Literal["zero", "scale", "add", "set", "mean", "patch"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Intervened:
    """A change of a slice of a stage: its spelling, axis word (or `block`) -> indices.

    over: the axes that a mean is taken over. source: which of the other inputs' runs brings the
    values of a patch or a mean.
    """

    stage: str
    op: InterventionOp
    where: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    value: float | Array | None = None
    over: tuple[str, ...] = ()
    source: int | None = None
