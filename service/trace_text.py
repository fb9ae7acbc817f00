"""How large a trace's answer is in each form, before it is run: about, and at most."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial

import orjson

from compute import config_json
from compute.config import ModelConfig
from compute.selection import Scene, Wanted
from compute.sizing.tracing import identity_bytes, traced, wire_bytes
from compute.sizing.tracing.shown import Shown
from compute.sizing.tracing.wire_bytes import Text
from compute.types import DType
from service.forms.form import SAFETENSORS, Form
from service.forms.lines import PIECE_ELEMENTS

_KEYS = 1024
"""The keys of an answer, its digest, where weights came from, names of the model and its preset."""

_TOKEN = 192
"""Of the next token of a row: its keys, position, id and logit."""

_GIVEN = 12
"""A position id and its comma, or a token's type, at most."""

_MASKED = len("false,")


_HEADER = 8 + len('{"__metadata__":{"answer":""}}') + 7
"""Of a safetensors body around its answer and its entries, with its padding."""


def answer(scene: Scene, wanted: Sequence[Wanted], beside: Text, dtype: DType, form: Form) -> Text:
    """Bytes of an answer with these tensors in a form, and what is beside them; `about` is of
    seeded weights and inputs."""
    of_stage = _of_stage(form)
    found = _beside_in(beside, form)
    for each in wanted:
        found += of_stage(Shown(each, scene, dtype))
    return found


def at_most(scene: Scene, wanted: Sequence[Wanted], beside: Text, dtype: DType, form: Form) -> int:
    """What `answer` gives at most, without what takes long: the mean of each stage."""
    of_stage = _of_stage(form)

    def most(shown: Shown) -> int:
        return of_stage(shown).at_most

    tensors = traced.tensors_at_most(scene, wanted, dtype, most if _differs(form) else _nested)
    return tensors + _beside_in(beside, form).at_most


def longest_line(scene: Scene, wanted: Sequence[Wanted], dtype: DType, form: Form) -> int:
    """Bytes of the longest line of a stream at most."""
    packed = not form.is_nested
    each = (
        wire_bytes.longest_line(Shown(x, scene, dtype), PIECE_ELEMENTS, is_packed=packed)
        for x in wanted
    )
    return max(each, default=0)


def _nested(shown: Shown) -> int:
    return shown.json_at_most()


def _differs(form: Form) -> bool:
    return not form.is_nested or form.is_lines or form.digits is not None


def _of_stage(form: Form) -> Callable[[Shown], Text]:
    if form.media == SAFETENSORS:
        of_stage: Callable[[Shown], Text] = wire_bytes.safetensors
    elif form.is_lines:
        packed = not form.is_nested
        of_stage = partial(wire_bytes.lines, piece=PIECE_ELEMENTS, is_packed=packed)
    else:
        of_stage = wire_bytes.nested if form.is_nested else wire_bytes.base64
    if form.digits is None:
        return of_stage
    return lambda shown: of_stage(shown) + _ROUNDED * _lines_of(shown, form)


_ROUNDED = Text(wire_bytes.ROUNDED, wire_bytes.ROUNDED * 2)  # escaped in a safetensors body


def _lines_of(shown: Shown, form: Form) -> int:
    return wire_bytes.line_count(shown, PIECE_ELEMENTS) if form.is_lines else 1


def _beside_in(beside: Text, form: Form) -> Text:
    """What is not tensors: as text inside of text it has its quotation marks escaped."""
    if form.media != SAFETENSORS:
        return beside
    return Text(beside.about * 5 // 4 + _HEADER, beside.at_most * 2 + _HEADER)


def beside(scene: Scene, absent: Mapping[str, str]) -> Text:
    """Of a trace without interventions, of weights that its request neither brings nor edits; the
    texts of a tokenizer's tokens and rows without a key come beside."""
    identities = identity_bytes.of(scene.config)
    told = config_bytes(scene.config) + _absent(absent)
    rows = scene.lengths.get("b", 1)
    return Text(
        about=_KEYS // 2
        + told
        + identities.about
        + _read(scene, at_most=False)
        + rows * _TOKEN // 2,
        at_most=_KEYS + told + identities.at_most + _read(scene, at_most=True) + rows * _TOKEN,
    )


@lru_cache(maxsize=64)
def config_bytes(config: ModelConfig) -> int:
    """Of a config as an answer tells it."""
    return len(orjson.dumps(config_json.as_json(config)))


def _absent(absent: Mapping[str, str]) -> int:
    return len(orjson.dumps(absent))


def _read(scene: Scene, *, at_most: bool) -> int:
    """The input and the memory as read: ids, positions, a mask."""
    return sum(_rows_read(*rows, at_most=at_most) for rows in _rows(scene))


def _rows(scene: Scene) -> Iterator[tuple[int, int, int]]:
    """(sequences, positions, characters of a token's id or 0) of what is read."""
    batch, digits = scene.lengths.get("b", 1), len(str(scene.config.vocab or 0))
    yield batch, scene.lengths["n"], digits * scene.tokens
    if scene.lengths["s"]:
        yield batch, scene.lengths["s"], digits * scene.memory_tokens


def _rows_read(batch: int, positions: int, digits: int, *, at_most: bool) -> int:
    ids = digits + 1 if digits else 0
    places = _GIVEN if at_most else len(str(positions)) + 1
    others = _MASKED + _GIVEN + len("null,") if at_most else 0
    lists = 2 * (batch + 1) * (5 if at_most else 2)
    return batch * positions * (ids + places + others) + lists
