"""What an answer says beside its tensors: the model, the input as read, what follows from them."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from compute.cost import Cost
from compute.positions import ids_for
from compute.trace import Trace
from compute.types import Array, Bools, Inputs, Ints
from service.modelled import Modelled, Weighted
from service.reading import Reading

View = Mapping[str, object]


def model(asked: Modelled, weighted: Weighted) -> View:
    """Name (of a stored model), digest, resolved config, where each weight came from."""
    return {
        "name": None if asked.checkpoint is None else asked.checkpoint.name,
        "preset": asked.asked.preset,
        "digest": weighted.digest,
        "config": asked.told_config,
        "weights": weighted.origin,
        "overrides": asked.overrides,
    }


def read(asked: Modelled, reading: Reading) -> View:
    """The input as the model read it: ids and masks as used, token ids as text where it has one."""
    inputs = reading.inputs
    memory = inputs.memory
    return {
        **_rows_read(asked, inputs, reading.real),
        "memory": None if memory is None else _rows_read(asked, memory, reading.memory_real),
    }


def _rows_read(asked: Modelled, inputs: Inputs, real: Bools | None) -> View:
    return {
        "positions": inputs.positions,
        "batch": inputs.batch,
        "tokens": _tokens(asked, inputs.token_ids, real),
        "token_ids": inputs.token_ids,
        "position_ids": np.ascontiguousarray(np.broadcast_to(ids_for(inputs), inputs.shape)),
        "key_mask": inputs.key_mask,
        "token_types": inputs.token_types,
    }


def cost(price: Cost) -> View:
    """Parameters, floating point operations of the products, numbers answered, bytes of the run."""
    return {
        "parameters": price.parameters,
        "flops": price.flops,
        "elements": price.elements,
        "bytes": price.bytes,
    }


def fully_masked_rows(traced: Trace) -> list[View]:
    """The positions with no key to attend to, by pattern (and row of the batch)."""
    batch = traced.run.inputs.batch
    return [
        {"stage": name, **row}
        for name, masked in traced.fully_masked.items()
        for row in _rows(_by_batch(masked, batch or 1), batch is not None)
    ]


def _by_batch(masked: Bools, batch: int) -> Bools:
    """(n) or (b, 1, n) -> (b, n): one row for all of a batch, or each its own."""
    positions = masked.shape[-1]
    return np.broadcast_to(masked.reshape(-1, positions), (batch, positions))


def _rows(masked: Bools, batched: bool) -> Iterator[View]:
    for at, row in enumerate(masked):
        if row.any():
            yield {**({"batch": at} if batched else {}), "position": np.flatnonzero(row)}


def next_token(asked: Modelled, traced: Trace) -> object:
    """The token of the largest logit at the last position that may be attended to.

    One, or one for each row of a batch; null where the logits were not kept whole.
    """
    logits = traced.whole.get("logits")
    if logits is None:
        return None
    inputs = traced.run.inputs
    if inputs.batch is None:
        return _largest(asked, logits, inputs.key_mask)
    shape = (inputs.batch, inputs.positions)
    masks = None if inputs.key_mask is None else np.broadcast_to(inputs.key_mask, shape)
    return [
        _largest(asked, row, None if masks is None else masks[at]) for at, row in enumerate(logits)
    ]


def _largest(asked: Modelled, logits: Array, key_mask: Bools | None) -> View:
    attended = range(len(logits)) if key_mask is None else np.flatnonzero(key_mask)
    position = int(attended[-1]) if len(attended) else len(logits) - 1
    token_id = int(logits[position].argmax())
    return {
        "position": position,
        "token_id": token_id,
        "token": piece(asked, token_id),
        "logit": logits[position, token_id],
    }


def piece(asked: Modelled, token_id: int) -> str | None:
    """A token as text, for a model with a tokenizer that has it."""
    return None if asked.text is None else asked.text.piece(token_id)


def _tokens(asked: Modelled, token_ids: Ints | None, real: Bools | None) -> object:
    if token_ids is None or asked.text is None:
        return None
    kept = np.ones(token_ids.shape, np.bool_) if real is None else real
    return _pieces(token_ids, kept, asked.text.piece)


def _pieces(token_ids: Ints, real: Bools, piece: Callable[[int], str | None]) -> list[object]:
    rows = zip(token_ids, real, strict=True)
    if token_ids.ndim > 1:
        return [_pieces(ids, kept, piece) for ids, kept in rows]
    return [piece(int(token_id)) if kept else None for token_id, kept in rows]
