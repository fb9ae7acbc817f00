"""The input and the memory of a request: their texts as token ids, their sizes within limits."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from compute import inputs
from compute.checkpoints.folder import Checkpoint
from compute.checkpoints.text import Text
from compute.errors import Fault, InputError
from compute.types import Bools, DType, Inputs
from schemas.inputs import READ, InputAsked, RowsAsked
from service import limits
from service.settings import Settings

_MEMORY = "memory"


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """An input as compute takes it; which token ids of a text, and of the memory's, are no padding.

    Both are None where the ids were sent, or where there are none.
    """

    inputs: Inputs
    real: Bools | None
    memory_real: Bools | None = None


def read(
    asked: InputAsked, dtype: DType, checkpoint: Checkpoint | None, settings: Settings
) -> Reading:
    """The input and its memory, texts as token ids with padding masked."""
    limits.check_texts(asked, settings)
    if asked.memory is None:
        return Reading(*_with_tokens(asked, dtype, checkpoint))
    _check_memory_asked(asked.memory, settings)
    made, real = _with_tokens(asked, dtype, checkpoint)
    with _inside_memory():
        memory, memory_real = _with_tokens(asked.memory, dtype, checkpoint)
    _check_memory(memory, asked.memory, settings)
    return Reading(replace(made, memory=memory), real, memory_real)


def _with_tokens(
    asked: RowsAsked, dtype: DType, checkpoint: Checkpoint | None
) -> tuple[Inputs, Bools | None]:
    """The rows, a text as token ids with padding masked; which ids are no padding."""
    made = asked.to_compute(dtype)
    if asked.text is None:
        return made, None
    with placed(asked):
        tokens = _tokenizer(checkpoint).encode(asked.text.strings, asked.special_tokens)
    real = tokens.real if asked.text.batched else tokens.real[0]
    return inputs.with_tokens(made, tokens.ids, tokens.real, asked.text.batched), real


def _tokenizer(checkpoint: Checkpoint | None) -> Text:
    if checkpoint is not None and checkpoint.text is not None:
        return checkpoint.text
    whose = "Only a named model brings a" if checkpoint is None else "This model has no"
    detail = f"{whose} tokenizer; send token_ids or a tensor."
    raise InputError([Fault(code="no_tokenizer", detail=detail, place=("text",))])


def _check_memory_asked(asked: RowsAsked, settings: Settings) -> None:
    """Raise TooLarge for more texts than batch, or a tensor nested too deep."""
    if asked.text is not None:
        place = ("input", _MEMORY, "text")
        limits.check("batch", len(asked.text.strings), settings, place=place)
    if asked.tensor is not None:
        place = ("input", _MEMORY, "tensor")
        limits.check("rank", asked.tensor.ndim, settings, place=place)


def _check_memory(memory: Inputs, asked: RowsAsked, settings: Settings) -> None:
    """Raise TooLarge for a memory beyond positions or batch."""
    place = ("input", _MEMORY, next(name for name in READ if getattr(asked, name) is not None))
    limits.check("positions", memory.positions, settings, place=place)
    limits.check("batch", memory.batch or 1, settings, place=place)


@contextmanager
def placed(asked: RowsAsked) -> Iterator[None]:
    """Faults of the tokens of a text are faults of the text: of one string, or of one in a list."""
    try:
        yield
    except InputError as error:
        raise InputError([_placed(fault, asked) for fault in error.faults]) from None


def _placed(fault: Fault, asked: RowsAsked) -> Fault:
    first, *inner = fault.place or ("",)
    if first == _MEMORY and isinstance(asked, InputAsked) and asked.memory is not None:
        found = _placed(replace(fault, place=tuple(inner)), asked.memory)
        return replace(found, place=(_MEMORY, *found.place))
    if asked.text is None or first not in ("text", "token_ids"):
        return fault
    detail = fault.detail
    if fault.code == "out_of_vocabulary" and first == "token_ids":
        detail = f"The model's tokenizer has more tokens than its vocab. {detail}"
    place = ("text", *inner[:1]) if asked.text.batched else ("text",)
    return replace(fault, detail=detail, place=place)


@contextmanager
def _inside_memory() -> Iterator[None]:
    try:
        yield
    except InputError as error:
        faults = [replace(fault, place=(_MEMORY, *fault.place)) for fault in error.faults]
        raise InputError(faults) from None
