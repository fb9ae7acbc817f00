"""An answer read back: its tensors as arrays, row of the batch by row, and names for its rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np

from compute import stages
from compute.types import AXES
from schemas.answers import NextToken, TensorAnswer, TraceAnswer
from schemas.resolved import ConfigAnswer
from service.picture import words
from service.picture.words import Floats

LETTERS = {word: letter for letter, word in AXES.items()}
MEASURES = ("norm", "rms", "mean", "min", "max")
PADDING = "(pad)"
_FINITE = {"-inf": -np.inf, "+inf": np.inf, "nan": np.nan}


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A stage of an answer; of a summary the last axis is `measure`.

    indices: for each axis, which entries of it these are. sliced: the axes that were cut.
    """

    name: str
    symbol: str
    axes: tuple[str, ...]
    indices: Mapping[str, tuple[int, ...]]
    sliced: frozenset[str]
    values: Floats

    @property
    def stage(self) -> str:
        """The name without its block."""
        return stages.local_name(self.name)

    @property
    def summed(self) -> bool:
        """Rows are told by their measures."""
        return self.axes[-1] == "measure"

    @property
    def heads(self) -> tuple[int, ...] | None:
        """Which heads these are; None for a stage that is not split into heads."""
        return self.indices[self.axes[0]] if self.axes[0] in ("head", "kv_head") else None

    @property
    def rows(self) -> tuple[int, ...]:
        """The positions of the rows."""
        return self.indices[self.axes[0 if self.heads is None else 1]]


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """One row of a batch, or all of an answer without a batch.

    at: which row of the batch. tokens: a label for each position, where the input has text or ids.
    known: token ids whose text the answer tells. text: that of others, empty if there is none.
    """

    config: ConfigAnswer
    at: int | None
    positions: int
    tokens: Sequence[str] | None
    position_ids: Sequence[int]
    key_mask: Sequence[bool] | None
    tensors: tuple[Tensor, ...]
    next_token: NextToken | None
    known: Mapping[int, str]
    text: Callable[[int], str]

    def label(self, position: int) -> str:
        """What a column of this position is called."""
        return str(position) if self.tokens is None else self.tokens[position]

    def place(self, position: int) -> str:
        """What a row of this position is called: its number, and its token."""
        return str(position) if self.tokens is None else f"{position} {self.tokens[position]}"

    def token(self, token_id: int) -> str:
        """A token's text where it is known, else its id."""
        known = self.known.get(token_id) or words.token(self.text(token_id))
        return known or f"id {token_id}"


def readings(
    answer: TraceAnswer, token_of: Callable[[str, int], str] | None = None
) -> Iterator[Reading]:
    """The rows of the batch that have tensors, or the one reading of an answer without a batch.

    token_of: from a model's name and a token id to its text.
    """
    text, model = _nothing, answer["model"]["name"]
    if token_of is not None and model is not None:
        text = partial(token_of, model)
    tensors = [tensor(name, told) for name, told in answer["tensors"].items()]
    batch = answer["input"]["batch"]
    if batch is None:
        yield _reading(answer, None, tuple(tensors), text)
        return
    for at in range(batch):
        there = [_of_row(one, at) for one in tensors if at in one.indices["batch"]]
        if there or not tensors:
            yield _reading(answer, at, tuple(there), text)


def tensor(name: str, told: TensorAnswer) -> Tensor:
    """A tensor with its numbers as an array, those that JSON has no number for too."""
    axes, index = tuple(told["axes"]), told.get("index", {})
    if "summary" in told:
        summary = cast(Mapping[str, object], told["summary"])
        values = np.stack([np.array(summary[name], np.float64) for name in MEASURES], axis=-1)
        axes = (*axes, "measure")
    else:
        values = _restored(told)
    lengths = zip(axes, values.shape, strict=True)
    indices = {axis: tuple(index.get(axis, range(length))) for axis, length in lengths}
    return Tensor(name, told["symbol"] or "", axes, indices, frozenset(index), values)


def _restored(told: TensorAnswer) -> Floats:
    values = np.array(told["data"], np.float64)
    nonfinite: object = told.get("nonfinite", {})
    if nonfinite == "-inf":
        return np.where(np.isnan(values), -np.inf, values)
    flat = values.reshape(-1)
    for kind, runs in cast(Mapping[str, list[list[int]]], nonfinite).items():
        for offset, length in runs:
            flat[offset : offset + length] = _FINITE[kind]
    return values


def _of_row(one: Tensor, at: int) -> Tensor:
    indices = {axis: index for axis, index in one.indices.items() if axis != "batch"}
    values = one.values[one.indices["batch"].index(at)]
    return replace(one, axes=one.axes[1:], indices=indices, values=values)


def _nothing(token_id: int) -> str:
    return ""


def _reading(
    answer: TraceAnswer, at: int | None, tensors: tuple[Tensor, ...], text: Callable[[int], str]
) -> Reading:
    told, following = answer["input"], answer["next_token"]
    known = _known(answer)
    ids = cast(Sequence[int] | None, _row(told["token_ids"], at))
    pieces = cast(Sequence[str | None] | None, _row(told["tokens"], at))
    return Reading(
        config=answer["model"]["config"],
        at=at,
        positions=told["positions"],
        tokens=_labels(ids, pieces),
        position_ids=cast(Sequence[int], _row(told["position_ids"], at)),
        key_mask=cast(Sequence[bool] | None, _row(told["key_mask"], at)),
        tensors=tensors,
        next_token=following[at or 0] if isinstance(following, list) else following,
        known=known,
        text=text,
    )


def _row(told: object, at: int | None) -> object:
    """A row of what may have a batch axis."""
    nested = isinstance(told, list) and bool(told) and isinstance(told[0], list)
    return cast(list[object], told)[at or 0] if nested else told


def _labels(ids: Sequence[int] | None, pieces: Sequence[str | None] | None) -> Sequence[str] | None:
    if pieces is not None:
        return [PADDING if piece is None else words.token(piece) for piece in pieces]
    return None if ids is None else [f"#{token_id}" for token_id in ids]


def _known(answer: TraceAnswer) -> dict[int, str]:
    """Token id -> text, for those that the answer tells."""
    told, following = answer["input"], answer["next_token"]
    pairs = zip(_flat(told["token_ids"]), _flat(told["tokens"]), strict=False)
    known = {cast(int, token_id): piece for token_id, piece in pairs if piece is not None}
    for one in following if isinstance(following, list) else [following]:
        if one is not None and one["token"] is not None:
            known[one["token_id"]] = one["token"]
    return {token_id: words.token(str(piece)) for token_id, piece in known.items()}


def _flat(told: object) -> list[object]:
    if not isinstance(told, list):
        return []
    nested = bool(told) and isinstance(told[0], list)
    return [one for row in told for one in row] if nested else list(told)
