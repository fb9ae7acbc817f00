"""An answer read back, stack by stack and row of the batch by row, with names for its rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from compute import stages
from schemas.answers import NextToken, RowsAnswer, TraceAnswer
from schemas.resolved import StackAnswer
from service.picture import tensor as tensors
from service.picture import words
from service.picture.tensor import Tensor

PADDING = "(pad)"


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What a stack reads. tokens: a label for each position, where there is text or ids."""

    positions: int
    tokens: Sequence[str] | None
    position_ids: Sequence[int]
    key_mask: Sequence[bool] | None
    token_types: Sequence[int] | None

    def label(self, position: int) -> str:
        """What a column of this position is called."""
        return str(position) if self.tokens is None else self.tokens[position]

    def place(self, position: int) -> str:
        """What a row of this position is called: its number, and its token."""
        return str(position) if self.tokens is None else f"{position} {self.tokens[position]}"


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """One stack, in one row of a batch, or in all of an answer without a batch.

    stack: `encoder.`, or empty for the model's own. at: which row of the batch. memory: what
    cross-attention reads. known: token ids whose text the answer tells. text: that of others,
    empty if there is none.
    """

    config: StackAnswer
    stack: str
    at: int | None
    rows: Rows
    memory: Rows | None
    tensors: tuple[Tensor, ...]
    next_token: NextToken | None
    known: Mapping[int, str]
    text: Callable[[int], str]

    def rows_of(self, axis: str | None) -> Rows:
        """What an axis of positions counts: the memory's, or the stack's own."""
        return self.memory if axis == "source_position" and self.memory else self.rows

    def token(self, token_id: int) -> str:
        """A token's text where it is known, else its id."""
        known = self.known.get(token_id) or words.token(self.text(token_id))
        return known or f"id {token_id}"

    def beside(self, one: Tensor, stage: str) -> Tensor | None:
        """Another stage of the same block, of the same heads and positions, kept as it is."""
        found = next((x for x in self.tensors if x.name == one.block + stage), None)
        if found is None or found.summed:
            return None
        alike = (one.indices.get(axis, index) == index for axis, index in found.indices.items())
        return found if all(alike) else None


def readings(
    answer: TraceAnswer, token_of: Callable[[str, int], str] | None = None
) -> Iterator[Reading]:
    """The rows of the batch that have tensors, or the one reading of an answer without a batch.

    token_of: from a model's name and a token id to its text.
    """
    text, model = _nothing, answer["model"]["name"]
    if token_of is not None and model is not None:
        text = partial(token_of, model)
    found = [tensors.tensor(name, told) for name, told in answer["tensors"].items()]
    batch = answer["input"]["batch"]
    if batch is None:
        yield _reading(answer, None, tuple(found), text)
        return
    for at in range(batch):
        there = [tensors.of_row(one, at) for one in found if at in one.indices["batch"]]
        if there or not found:
            yield _reading(answer, at, tuple(there), text)


def by_stack(reading: Reading) -> Iterator[Reading]:
    """The encoder, where the answer has anything of it, then the model's own stack."""
    theirs = tuple(x for x in reading.tensors if stages.stack_of(x.name))
    config = cast(Mapping[str, StackAnswer | None], reading.config).get("encoder")
    if theirs and config is not None and reading.memory is not None:
        yield replace(
            reading,
            config=config,
            stack=stages.ENCODER,
            rows=reading.memory,
            memory=None,
            tensors=theirs,
        )
    own = tuple(x for x in reading.tensors if not stages.stack_of(x.name))
    yield replace(reading, tensors=own)


def _nothing(token_id: int) -> str:
    return ""


def _reading(
    answer: TraceAnswer, at: int | None, found: tuple[Tensor, ...], text: Callable[[int], str]
) -> Reading:
    told, following = answer["input"], answer["next_token"]
    memory = told["memory"]
    return Reading(
        config=answer["model"]["config"],
        stack="",
        at=at,
        rows=_rows(told, at),
        memory=None if memory is None else _rows(memory, at),
        tensors=found,
        next_token=following[at or 0] if isinstance(following, list) else following,
        known=_known(answer),
        text=text,
    )


def _rows(told: RowsAnswer, at: int | None) -> Rows:
    ids = cast(Sequence[int] | None, _row(told["token_ids"], at))
    pieces = cast(Sequence[str | None] | None, _row(told["tokens"], at))
    return Rows(
        positions=told["positions"],
        tokens=_labels(ids, pieces, cast(Sequence[bool] | None, _row(told["key_mask"], at))),
        position_ids=cast(Sequence[int], _row(told["position_ids"], at)),
        key_mask=cast(Sequence[bool] | None, _row(told["key_mask"], at)),
        token_types=cast(Sequence[int] | None, _row(told["token_types"], at)),
    )


def _row(told: object, at: int | None) -> object:
    """A row of what may have a batch axis."""
    nested = isinstance(told, list) and bool(told) and isinstance(told[0], list)
    return cast(list[object], told)[at or 0] if nested else told


def _labels(
    ids: Sequence[int] | None, pieces: Sequence[str | None] | None, key_mask: Sequence[bool] | None
) -> Sequence[str] | None:
    """A token's text, or its id where it has none; padding is masked."""
    if ids is None:
        return None
    texts = [None] * len(ids) if pieces is None else pieces
    masks = [True] * len(ids) if pieces is None or key_mask is None else key_mask
    return [_label(*told) for told in zip(ids, texts, masks, strict=True)]


def _label(token_id: int, text: str | None, attended: bool) -> str:
    if text is not None:
        return words.token(text)
    return f"#{token_id}" if attended else PADDING


def _known(answer: TraceAnswer) -> dict[int, str]:
    """Token id -> text, for those that the answer tells."""
    following = answer["next_token"]
    known: dict[int, object] = {}
    for told in filter(None, (answer["input"]["memory"], answer["input"])):
        pairs = zip(_flat(told["token_ids"]), _flat(told["tokens"]), strict=False)
        known |= {cast(int, token_id): piece for token_id, piece in pairs if piece is not None}
    for one in following if isinstance(following, list) else [following]:
        if one is not None and one["token"] is not None:
            known[one["token_id"]] = one["token"]
    return {token_id: words.token(str(piece)) for token_id, piece in known.items()}


def _flat(told: object) -> list[object]:
    if not isinstance(told, list):
        return []
    nested = bool(told) and isinstance(told[0], list)
    return [one for row in told for one in row] if nested else list(told)
