"""The limits of size and work, weighed before anything is made."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compute.checkpoints.text import Text
from compute.checkpoints.tokenizer_rules import LONGEST_TOKEN
from compute.config import ModelConfig
from compute.cost import BYTES, Cost
from compute.errors import Place
from compute.sizing.tracing import json_bytes
from compute.types import DType, Inputs
from schemas.inputs import InputAsked
from schemas.model import ModelAsked
from schemas.problems import Advice, BrokenLimit, Estimate
from service.errors import TooLarge
from service.forms.form import PLAIN, SAFETENSORS, Form
from service.settings import Settings

TEXT_BYTES = {dtype: longest + 1 for dtype, longest in json_bytes.LONGEST.items()}
"""Bytes of JSON a number takes at most, with its comma: what is weighed where shapes are not
known; of a trace they are, and its text is bounded with its brackets and names."""

AS_BINARY = (
    "All of it fits as a safetensors body (Accept: application/vnd.safetensors), which has the "
    "numbers as they are in memory."
)

_READ = ("tensor", "token_ids", "text")

_FLOPS_A_SECOND = 2e10
_SECONDS_A_NUMBER = 5e-8
BLOCK_FLOPS = 5_000_000
"""What a block run once more costs beside its products, told in flops of the same time: where
calls run small blocks thousands of times it is nearly all."""

WEIGHT_FLOPS = 6
"""The same for a weight read for one row alone: memory is slower than products."""

LINES_BYTES = 16 << 20
"""Of a stream of lines beside the arrays that it is made of: those that wait for their reader."""

_FEW_CHARACTERS = 1 << 19  # of tokens, which fit in any answer
_IDENTITY_BYTES = 32 << 20
"""Of float64 copies, made in blocks while identities are checked. They are gone before any text is
made, so that keys, rows as read and texts of tokens have their room."""


def check_config(config: ModelConfig, asked: ModelAsked, settings: Settings) -> None:
    """Raise TooLarge for a model, or an encoder, beyond d_model or blocks."""
    check("d_model", config.d_model, settings, place=_of_model(asked, "d_model"))
    check("blocks", config.n_layers, settings, place=_of_model(asked, "n_layers"))
    if config.encoder is not None:
        check("blocks", config.encoder.n_layers, settings, place=_of_encoder(asked))


def _of_encoder(asked: ModelAsked) -> Place:
    """Where a request says how deep the encoder is, or what brings that."""
    encoder = None if asked.config is None else asked.config.encoder
    said = encoder is not None and "n_layers" in encoder.model_fields_set
    return (*_of_model(asked, "encoder"), *(("n_layers",) if said else ()))


def _of_model(asked: ModelAsked, field: str) -> Place:
    """Where a request says a field of the config, or names the model that has it."""
    if asked.config is not None and field in asked.config.model_fields_set:
        return ("model", "config", field)
    return ("model", "name" if asked.name is not None else "preset")


def check_weight_ranks(asked: ModelAsked, settings: Settings) -> None:
    """Raise TooLarge for a tensor of the weights nested deeper than rank."""
    for name, values in asked.weights.tensors.items():
        check("rank", values.ndim, settings, place=("model", "weights", "tensors", name))


def check_rank(asked: InputAsked, settings: Settings) -> None:
    """Raise TooLarge for an input's tensor nested deeper than rank."""
    if asked.tensor is not None:
        check("rank", asked.tensor.ndim, settings, place=("input", "tensor"))


def check_texts(asked: InputAsked, settings: Settings) -> None:
    """Raise TooLarge for more texts than batch, before any is made into tokens."""
    texts = 1 if asked.text is None else len(asked.text.strings)
    check("batch", texts, settings, place=("input", "text"))


def check_input(read: Inputs, asked: InputAsked, settings: Settings) -> None:
    """Raise TooLarge for an input beyond positions or batch."""
    place = ("input", next(name for name in _READ if getattr(asked, name) is not None))
    check("positions", read.positions, settings, place=place)
    check("batch", read.batch or 1, settings, place=place)


def check_tokens(read: Inputs, text: Text | None, settings: Settings) -> None:
    """Raise TooLarge for ids whose tokens, which the answer names, are too long together."""
    rows = [x for x in (read, read.memory) if x is not None]
    ids = [x.token_ids for x in rows if x.token_ids is not None]
    count = sum(x.size for x in ids)
    if text is not None and LONGEST_TOKEN * count > _most_characters(settings):
        said = "The input's tokens, which the answer names, have {got:,} characters; the limit is "
        said += "{most:,}, as for numbers: send fewer positions."
        check_characters(sum(map(text.characters, ids)), said, settings, ("input",))


def check_characters(got: int, said: str, settings: Settings, place: Place) -> None:
    """Raise TooLarge, saying `said` of {got} and {most}, where tokens that an answer names have
    more characters than fit."""
    most = _most_characters(settings)
    if got > most:
        limit: BrokenLimit = {"name": "answer_elements", "value": most, "got": got}
        raise TooLarge(limit=limit, detail=said.format(got=got, most=most), place=place)


def _most_characters(settings: Settings) -> int:
    return max(settings.answer_elements, _FEW_CHARACTERS)


def check(
    name: str, got: int, settings: Settings, *, place: Place = (), advice: Advice | None = None
) -> None:
    """Raise TooLarge where there are more than the limit of this name allows."""
    most = getattr(settings, name)
    if got > most:
        limit: BrokenLimit = {"name": name, "value": most, "got": got}
        raise TooLarge(limit=limit, advice=advice, place=place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a call needs beyond a single traced run: numbers it answers, bytes it holds at once
    (weights, kept arrays, temporaries), flops, its parts, (what, numbers of the answer).

    in_arrays: of the numbers those that no form but nested lists writes as text. text_bytes: of
    its text at most, in its form, where more is known than how many numbers there are.
    """

    elements: int
    bytes: int
    flops: int
    parts: Sequence[tuple[str, int]] = ()
    in_arrays: int = 0
    text_bytes: int | None = None


def check_need(
    need: Need, dtype: DType, settings: Settings, advice: str, form: Form | None = None
) -> int:
    """The bytes of a call with its answer's text; TooLarge, with the estimate, beyond a limit.

    form: None of a call that answers nested lists alone.
    """
    own = form or PLAIN
    total = need_bytes(need, dtype, own)
    broken = next(beyond(need.elements, total, need.flops, settings, own), None)
    if broken is None:
        return total
    name, most, got = broken
    raise TooLarge(
        limit={"name": name, "value": most, "got": got},
        estimate=estimate_of(need, total),
        advice={"text": advice + _in_binary(need, dtype, settings, form)},
    )


def _in_binary(need: Need, dtype: DType, settings: Settings, form: Form | None) -> str:
    """Words for what would fit as it is, were it not written as text."""
    if form is None or not form.is_nested:
        return ""
    other = Form(SAFETENSORS)
    total = need_bytes(need, dtype, other)
    fits = next(beyond(need.elements, total, need.flops, settings, other), None) is None
    return f" {AS_BINARY}" if fits else ""


def need_bytes(need: Need, dtype: DType, form: Form) -> int:
    """Memory of a call: what it holds and the text of its answer in a form, at most."""
    text = need.text_bytes
    if text is None:
        beside = TEXT_BYTES[dtype] * (need.elements - need.in_arrays)
        text = beside + _of_arrays(need.in_arrays, dtype, form)
    return _with_text(need.bytes, text)


def _of_arrays(numbers: int, dtype: DType, form: Form) -> int:
    """Bytes of numbers that stand in arrays; lines of them are made while they are sent."""
    raw = BYTES[dtype] * numbers
    if form.media == SAFETENSORS:
        return raw
    text = TEXT_BYTES[dtype] * numbers if form.is_nested else raw * 4 // 3 + 3
    return min(text, LINES_BYTES) if form.is_lines else text


def estimate_of(need: Need, total: int) -> Estimate:
    """What a call would cost, as a problem tells it; total: bytes."""
    parts = sorted(need.parts, key=lambda part: (-part[1], part[0]))
    return {
        "elements": need.elements,
        "bytes": total,
        "seconds": seconds(need.flops, need.elements),
        "parts": [{"stage": name, "elements": count} for name, count in parts],
    }


def seconds(flops: int, elements: int) -> float:
    return round(flops / _FLOPS_A_SECOND + elements * _SECONDS_A_NUMBER, 3)


def beyond(
    elements: int, needed_bytes: int, flops: int, settings: Settings, form: Form = PLAIN
) -> Iterator[tuple[str, int, int]]:
    """(name, limit, what was needed) of each limit of work that is broken in a form."""
    needed = {form.limit: elements, "memory_bytes": needed_bytes, "work_flops": flops}
    for name, got in needed.items():
        most = getattr(settings, name)
        if got > most:
            yield name, most, got


def memory_bytes(price: Cost, text_bytes: int) -> int:
    """Memory of a request: its run and the text of its answer, at most."""
    return _with_text(price.bytes, text_bytes)


def _with_text(run_bytes: int, text_bytes: int) -> int:
    return run_bytes + text_bytes + _IDENTITY_BYTES
