"""Tensors and traces as JSON, in pieces: numbers print shortest and round-trip.

What JSON has no number for (-inf of a masked score, inf and nan of an overflow) is null, and the
member `nonfinite` says which null is which.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import orjson

from compute import stages
from compute.config import ModelConfig
from compute.selection import Wanted
from compute.trace import Trace
from compute.types import AXES, Array, Bools, Ints, Value

_OPTIONS = orjson.OPT_SERIALIZE_NUMPY

_BLOCK_ELEMENTS = 1 << 18  # rows are summed up in blocks of 2 MiB of float64

Member = tuple[str, object]


def dumps(value: object) -> bytes:
    """A value as JSON; arrays must be C-contiguous."""
    return orjson.dumps(value, option=_OPTIONS)


@dataclass(frozen=True, slots=True)
class Tensors:
    """A member of an answer that holds tensors by name: each is encoded by itself, in turn."""

    named: Iterable[tuple[str, Mapping[str, object]]]


def answer(members: Mapping[str, object]) -> list[bytes]:
    """One JSON object in pieces, its members in their order."""
    pieces = []
    for at, (name, value) in enumerate(members.items()):
        pieces.append((b"," if at else b"{") + dumps(name) + b":")
        pieces += _in_turn(value) if isinstance(value, Tensors) else [dumps(value)]
    return [*pieces, b"}\n"]


def _in_turn(tensors: Tensors) -> Iterator[bytes]:
    yield b"{"
    for at, (name, value) in enumerate(tensors.named):
        yield (b"," if at else b"") + dumps(name) + b":"
        yield dumps(value)
    yield b"}"


def of_trace(traced: Trace) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The tensors of a trace by name, in the order they were computed."""
    config = traced.run.config
    return ((m.wanted.name, dict(tensor(m.wanted, m.values, config))) for m in traced.made)


def array(letters: str, values: Value) -> dict[str, object]:
    """A tensor of an answer that is no stage: axes by their letters, shape, dtype, data."""
    members: dict[str, object] = {
        "axes": [AXES[letter] for letter in letters],
        "shape": values.shape,
        "dtype": values.dtype.name,
    }
    return {**members, **dict(_data(values))}


def tensor(wanted: Wanted, values: Value, config: ModelConfig) -> Iterator[Member]:
    """The members of one tensor of an answer."""
    batched = values.ndim > len(wanted.stage.axes)
    axes = stages.axes_of(wanted.stage, batched)
    shown = axes[:-1] if wanted.summary else axes
    yield "symbol", wanted.stage.symbol if wanted.stage.symbol_holds(config) else None
    yield "axes", [AXES[letter] for letter in shown]
    yield "shape", values.shape[: len(shown)]
    yield "dtype", values.dtype.name
    if wanted.where:
        yield (
            "index",
            {AXES[letter]: wanted.where[letter] for letter in axes if letter in wanted.where},
        )
    yield from _summary(values) if wanted.summary else _data(values)


def _data(values: Value) -> Iterator[Member]:
    yield "data", np.ascontiguousarray(values)
    flat = values.reshape(-1)
    if np.isfinite(flat).all():
        return
    kinds = {"-inf": np.isneginf(flat), "+inf": np.isposinf(flat), "nan": np.isnan(flat)}
    there = {kind: where for kind, where in kinds.items() if where.any()}
    only_masked = list(there) == ["-inf"]
    runs = {kind: _runs(where) for kind, where in there.items() if not only_masked}
    yield "nonfinite", "-inf" if only_masked else runs


def _runs(where: Bools) -> Ints:
    """(runs, 2): offset and length of each run of true, in order."""
    edges = np.flatnonzero(np.diff(where, prepend=False, append=False))
    return np.stack([edges[::2], edges[1::2] - edges[::2]], axis=1)


def _summary(values: Value) -> Iterator[Member]:
    """norm, rms, mean, min and max over the finite entries of the last axis.

    Summed in float64, told in the tensor's own dtype; of whole numbers in float64.
    """
    rows = values.reshape(-1, values.shape[-1])
    step = max(1, _BLOCK_ELEMENTS // rows.shape[-1])
    blocks = [_measures(rows[i : i + step]) for i in range(0, len(rows), step)]
    told = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    shape, dtype = values.shape[:-1], np.result_type(values.dtype, np.float32)
    yield "summary", {name: x.astype(dtype).reshape(shape) for name, x in told.items()}


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
