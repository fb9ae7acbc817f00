"""The tensors of an answer, before a form writes them.

What no form of JSON has a number for (-inf of a masked score, inf and nan of an overflow) is told
by the member `nonfinite` in every form, so that a reader need not look for it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from compute import stages
from compute.config import ModelConfig
from compute.selection import Wanted
from compute.trace import Trace
from compute.types import AXES, Array, Bools, Ints, Value
from service.forms.rounding import rounded

_BLOCK_ELEMENTS = 1 << 18  # rows are summed up in blocks of 2 MiB of float64

DTYPES = {np.dtype(name): name for name in ("float32", "float64", "int64", "bool")}
"""Their names, at hand: NumPy makes them anew each time."""

Members = Mapping[str, object]
Piece = bytes | memoryview


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """A tensor of an answer: what is told before its data, the values, what is told after it.

    summed: measures of each row stand in the place of the data. exact: never rounded.
    """

    told: Members
    values: Value
    summed: bool = False
    exact: bool = False
    after: Members = field(default_factory=dict)

    def rounded(self, digits: int | None) -> "Shown":
        """The same to so many significant digits, saying so."""
        if digits is None or self.exact or self.summed or self.values.dtype.kind != "f":
            return self
        told = {**self.told, "rounded": digits}
        return replace(self, told=told, values=rounded(self.values, digits), exact=True)


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """An array that is sent back some day, so never rounded; packed: as base64 in any JSON."""

    values: Array
    packed: bool


@dataclass(frozen=True, slots=True, eq=False)
class Tensors:
    """A member of an answer that holds tensors by name: each is encoded by itself, in turn."""

    named: Iterable[tuple[str, Shown]]


def of_trace(traced: Trace) -> Iterator[tuple[str, Shown]]:
    """The tensors of a trace by name, in the order they were computed."""
    config = traced.run.config
    return ((m.wanted.name, tensor(m.wanted, m.values, config)) for m in traced.made)


def array(letters: str, values: Value) -> Shown:
    """A tensor of an answer that is no stage: axes by their letters, shape, dtype, data."""
    members: Members = {
        "axes": [AXES[letter] for letter in letters],
        "shape": values.shape,
        "dtype": DTYPES[values.dtype],
    }
    return Shown(members, values)


def tensor(wanted: Wanted, values: Value, config: ModelConfig) -> Shown:
    """One stage of an answer."""
    stage, where = wanted.stage, wanted.where
    axes = stages.axes_of(stage, values.ndim > len(stage.axes))
    words = [AXES[letter] for letter in (axes[:-1] if wanted.summary else axes)]
    told: dict[str, object] = {
        "symbol": stage.symbol if stage.symbol_holds(config) else None,
        "axes": words,
        "shape": values.shape[: len(words)],
        "dtype": DTYPES[values.dtype],
    }
    if where:
        told["index"] = {AXES[letter]: where[letter] for letter in axes if letter in where}
    return Shown(told, values, summed=wanted.summary)


def nonfinite(values: Value) -> Members:
    """The member `nonfinite`: which entries are no numbers; nothing where all are."""
    if all_finite(values):
        return {}
    flat = values.reshape(-1)
    kinds = {"-inf": np.isneginf(flat), "+inf": np.isposinf(flat), "nan": np.isnan(flat)}
    there = {kind: where for kind, where in kinds.items() if where.any()}
    if list(there) == ["-inf"]:
        return {"nonfinite": "-inf"}
    return {"nonfinite": {kind: _runs(where) for kind, where in there.items()}}


def as_bytes(values: Value, *, finite: bool = False) -> memoryview:
    """The bytes of an array in row order, little-endian, every nan alike: its sign and payload
    mean nothing, and no form of text has them. finite: known to be numbers alone."""
    little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    if not (finite or all_finite(little)):
        little = np.where(np.isnan(little), little.dtype.type(np.nan), little)
    return little.reshape(-1).view(np.uint8).data


def all_finite(values: Value) -> bool:
    """Whether every entry is a number. A sum that is finite has finite terms alone; one that is
    not may have overflowed, so then each is looked at."""
    if values.dtype.kind != "f":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())


def _runs(where: Bools) -> Ints:
    """(runs, 2): offset and length of each run of true, in order."""
    edges = np.flatnonzero(np.diff(where, prepend=False, append=False))
    return np.stack([edges[::2], edges[1::2] - edges[::2]], axis=1)


def summary(values: Value) -> Mapping[str, Array]:
    """norm, rms, mean, min and max over the finite entries of the last axis.

    Summed in float64, told in the tensor's own dtype; of whole numbers in float64.
    """
    rows = values.reshape(-1, values.shape[-1])
    step = max(1, _BLOCK_ELEMENTS // rows.shape[-1])
    blocks = [_measures(rows[i : i + step]) for i in range(0, len(rows), step)]
    told = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    shape, dtype = values.shape[:-1], np.result_type(values.dtype, np.float32)
    return {name: x.astype(dtype).reshape(shape) for name, x in told.items()}


def _measures(rows: Value) -> dict[str, Array]:
    exact = rows.astype(np.float64)
    finite = np.isfinite(exact)
    kept = np.where(finite, exact, 0.0)
    counted = np.maximum(finite.sum(axis=-1), 1)
    nothing = np.where(finite.any(axis=-1), 0.0, np.nan)
    with np.errstate(over="ignore"):  # a norm beyond the dtype is inf, so null
        squares = np.square(kept).sum(axis=-1)
        measures = {
            "norm": np.sqrt(squares),
            "rms": np.sqrt(squares / counted),
            "mean": kept.sum(axis=-1) / counted,
            "min": np.where(finite, exact, np.inf).min(axis=-1),
            "max": np.where(finite, exact, -np.inf).max(axis=-1),
        }
        return {name: x + nothing for name, x in measures.items()}
