"""An input against its model: widths, ids and masks, all misfits at once."""

from collections.abc import Iterator
from dataclasses import replace

from compute import positions
from compute.config import ModelConfig, PositionConfig
from compute.errors import Fault, InputError, first_entries, refuse_if
from compute.types import Bools, Inputs, Ints


def check(inputs: Inputs, config: ModelConfig) -> Inputs:
    """The input itself, or an InputError with every misfit (at most `MOST_FAULTS` a tensor)."""
    refuse_if(InputError, [*_faults(inputs, config), *_memory_faults(inputs, config)])
    return inputs


def _faults(inputs: Inputs, config: ModelConfig) -> list[Fault]:
    """The faults of one stack's input; positions are looked at once its shapes fit."""
    faults = [*_read_faults(inputs, config), *_shape_faults(inputs), *_type_faults(inputs, config)]
    return faults or list(_position_faults(inputs, config))


def _memory_faults(inputs: Inputs, config: ModelConfig) -> Iterator[Fault]:
    """Faults of what cross-attention reads."""
    memory = inputs.memory
    if memory is None:
        if config.cross_attention:
            detail = "Cross-attention reads a memory: give memory."
            yield Fault(code="missing", detail=detail, place=("memory",))
        return
    if not config.cross_attention:
        detail = "Nothing reads a memory in this model: cross_attention is false."
        yield Fault(code="no_cross_attention", detail=detail, place=("memory",))
        return
    faults = _rows_only(memory) if config.encoder is None else []
    if not faults:
        reader = replace(config.encoder or _reader(config), vocab=config.vocab)
        faults = _faults(memory, reader)
    yield from (replace(fault, place=("memory", *fault.place)) for fault in faults)
    if memory.batch != inputs.batch:
        detail = "Input and memory have a batch axis of the same length, or neither has one."
        expected, got = inputs.batch or "no batch", memory.batch or "no batch"
        yield Fault(
            code="shape_mismatch", detail=detail, place=("memory",), expected=expected, got=got
        )


def _reader(config: ModelConfig) -> ModelConfig:
    """What rows are checked against where no encoder reads them."""
    return replace(config, position=PositionConfig(), token_types=0)


def _rows_only(memory: Inputs) -> list[Fault]:
    """Without an encoder the memory is rows and a mask of them."""
    read = ("token_ids", "position_ids", "attention_mask", "token_types")
    detail = "This model has no encoder: its memory is a tensor, with a key_mask or without."
    return [
        Fault(code="no_encoder", detail=detail, place=(name,))
        for name in read
        if getattr(memory, name) is not None
    ]


def _type_faults(inputs: Inputs, config: ModelConfig) -> Iterator[Fault]:
    types = inputs.token_types
    if types is None:
        return
    if not config.token_types:
        detail = "This model has no token types."
        yield Fault(code="no_token_types", detail=detail, place=("token_types",))
        return
    detail = f"A token type is a whole number from 0 to {config.token_types - 1}."
    outside = (types < 0) | (types >= config.token_types)
    yield from _at("token_types", outside, types, "out_of_token_types", detail)


def with_tokens(inputs: Inputs, ids: Ints, real: Bools, batched: bool) -> Inputs:
    """An input with token ids (b, n), their padding masked: key_mask AND real.

    One row that is no batch loses its axis. A key_mask that does not fit is left to `check`.
    """
    token_ids, kept = (ids, real) if batched else (ids[0], real[0])
    given = inputs.key_mask
    if given is not None and given.shape not in (kept.shape, kept.shape[-1:]):
        return replace(inputs, token_ids=token_ids)
    key_mask = kept if given is None else kept & given
    whole = given is None and bool(kept.all())
    return replace(inputs, token_ids=token_ids, key_mask=None if whole else key_mask)


def _read_faults(inputs: Inputs, config: ModelConfig) -> Iterator[Fault]:
    if inputs.token_ids is not None:
        yield from _token_faults(inputs.token_ids, config)
    elif inputs.tensor is not None and inputs.tensor.shape[-1] != config.d_model:
        expected = [*inputs.tensor.shape[:-1], config.d_model]
        detail = f"Each position is a row of d_model = {config.d_model} numbers."
        yield _shape("tensor", detail, expected, inputs.tensor.shape)


def _token_faults(token_ids: Ints, config: ModelConfig) -> Iterator[Fault]:
    if config.vocab is None:
        detail = "This model has no vocab, so it reads a tensor, not token ids."
        yield Fault(code="no_vocab", detail=detail, place=("token_ids",))
        return
    outside = (token_ids < 0) | (token_ids >= config.vocab)
    detail = f"A token id is a whole number from 0 to {config.vocab - 1}."
    yield from _at("token_ids", outside, token_ids, "out_of_vocabulary", detail)


def _shape_faults(inputs: Inputs) -> Iterator[Fault]:
    n = inputs.positions
    alike: dict[str, tuple[int, ...]] = dict.fromkeys(
        ("position_ids", "key_mask", "token_types"), (n,)
    )
    rows = {**alike, "attention_mask": (n, inputs.keys)}
    for name, shape in rows.items():
        values = getattr(inputs, name)
        batched = () if inputs.batch is None else (inputs.batch, *shape)
        if values is not None and values.shape not in (shape, batched):
            either = f" or {list(batched)}" if batched else ""
            detail = f"{name} must have the shape {list(shape)}{either} to fit the input."
            yield _shape(name, detail, list(batched or shape), values.shape)


def _position_faults(inputs: Inputs, config: ModelConfig) -> Iterator[Fault]:
    limit = config.position.n_positions if config.position.kind == "learned" else None
    if limit is None:
        return
    detail = f"The table of learned positions has the rows 0 to {limit - 1}."
    if inputs.position_ids is not None:
        outside = (inputs.position_ids < 0) | (inputs.position_ids >= limit)
        yield from _at("position_ids", outside, inputs.position_ids, "out_of_positions", detail)
    elif int(positions.ids_for(inputs).max()) >= limit:
        detail = f"{detail} The input has {inputs.positions} positions."
        expected, got = f"at most {limit} positions", inputs.positions
        place = ("tensor" if inputs.token_ids is None else "token_ids",)
        yield Fault(code="out_of_positions", detail=detail, place=place, expected=expected, got=got)


def _at(name: str, wrong: Bools, values: Ints, code: str, detail: str) -> Iterator[Fault]:
    for index in first_entries(wrong):
        yield Fault(code=code, detail=detail, place=(name, *index), got=int(values[index]))


def _shape(name: str, detail: str, expected: list[int], got: tuple[int, ...]) -> Fault:
    return Fault(
        code="shape_mismatch", detail=detail, place=(name,), expected=expected, got=list(got)
    )
