"""A cache as it was sent, against its model and input: a past, or every misfit."""

from collections.abc import Iterator, Mapping
from itertools import islice

from compute import decoding, stages, tensors
from compute.config import ModelConfig
from compute.errors import MOST_FAULTS, Fault, QuestionError, refuse_if
from compute.types import Array, Bools, Inputs, Ints, Past

_PLACE = "cache"


def past_of(
    config: ModelConfig,
    inputs: Inputs,
    named: Mapping[str, Array],
    position_ids: Ints,
    key_mask: Bools | None,
) -> Past:
    """The Past of keys and values by full name, before an input's rows; or a QuestionError.

    Keys (g, c, k), values (g, c, v), position_ids and key_mask (c), or each with the input's
    batch axis in front; c is as many as there are position ids.
    """
    names = decoding.remembered(config)
    wanted = _shapes(config, inputs.batch, position_ids.shape[-1])
    faults = [
        *_name_faults(names, named),
        *_row_faults({"position_ids": position_ids, "key_mask": key_mask}, inputs.batch),
        *_shape_faults(wanted, named),
    ]
    refuse_if(QuestionError, list(islice(faults, MOST_FAULTS)))
    cached = [named[name] for name in names]
    return Past(
        keys=tuple(cached[::2]),
        values=tuple(cached[1::2]),
        position_ids=position_ids,
        key_mask=key_mask,
    )


def _shapes(config: ModelConfig, batch: int | None, rows: int) -> Mapping[str, tuple[int, ...]]:
    lengths = {**tensors.widths(config), "m": rows, "b": batch or 0}
    letters = {x: stages.axes_of(stages.find(f"attn.{x}"), batch is not None) for x in "kv"}
    return {
        name: tuple(lengths[letter] for letter in letters[name[-1]])
        for name in decoding.remembered(config)
    }


def _name_faults(names: tuple[str, ...], named: Mapping[str, Array]) -> Iterator[Fault]:
    for name in names:
        if name not in named:
            detail = f"{name} is needed here: the cache has keys and values of every block."
            yield Fault(code="missing", detail=detail, place=(_PLACE, name))
    whole = f"{names[0]} to {names[-1]}" if names else "no keys and values"
    for name in named.keys() - set(names):
        detail = f"There is no such key here: this model's cache has {whole}."
        yield Fault(code="unknown_key", detail=detail, place=(_PLACE, name))


def _row_faults(rows: Mapping[str, Ints | Bools | None], batch: int | None) -> Iterator[Fault]:
    """Of the ids, which say how many rows there are, and of the mask, which has as many."""
    ids = rows["position_ids"]
    assert ids is not None  # noqa: S101 - a cache has them
    count = ids.shape[-1]
    for name, values in rows.items():
        fits = [(count,), *([] if batch is None else [(batch, count)])]
        if values is not None and values.shape not in fits:
            detail = f"{name} has the shape {' or '.join(str(list(shape)) for shape in fits)}."
            yield _misfit(name, detail, fits[-1], values.shape)


def _shape_faults(
    wanted: Mapping[str, tuple[int, ...]], named: Mapping[str, Array]
) -> Iterator[Fault]:
    for name, shape in wanted.items():
        if name in named and named[name].shape != shape:
            detail = (
                f"{name} has the shape {list(shape)} for this model, this input and as many rows "
                "as position_ids has."
            )
            yield _misfit(name, detail, shape, named[name].shape)


def _misfit(name: str, detail: str, expected: tuple[int, ...], got: tuple[int, ...]) -> Fault:
    return Fault(
        code="shape_mismatch",
        detail=detail,
        place=(_PLACE, name),
        expected=list(expected),
        got=list(got),
    )
