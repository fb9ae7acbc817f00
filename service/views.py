"""What an answer says beside its tensors: the model, the input as read, what follows from them."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from compute import config_json
from compute.cost import Cost
from compute.positions import ids_for
from compute.trace import Run, Trace, fully_masked
from compute.types import Array, Bools, Ints
from service.plans import Plan

View = Mapping[str, object]


def model(planned: Plan) -> View:
    """Name (of a stored model), digest, resolved config, what was overridden in it."""
    return {
        "name": None if planned.checkpoint is None else planned.checkpoint.name,
        "digest": planned.digest,
        "config": config_json.as_json(planned.run.config),
        "overrides": [],
    }


def read(planned: Plan) -> View:
    """The input as the model read it: ids and masks as used, token ids as text where it has one."""
    inputs = planned.run.inputs
    return {
        "positions": inputs.positions,
        "batch": inputs.batch,
        "tokens": _tokens(planned),
        "token_ids": inputs.token_ids,
        "position_ids": np.array(np.broadcast_to(ids_for(inputs), inputs.shape)),
        "key_mask": inputs.key_mask,
    }


def cost(price: Cost) -> View:
    """Parameters, floating point operations of the products, numbers answered, bytes of the run."""
    return {
        "parameters": price.parameters,
        "flops": price.flops,
        "elements": price.elements,
        "bytes": price.bytes,
    }


def fully_masked_rows(run: Run) -> list[View]:
    """The positions with no key to attend to, by pattern (and row of the batch)."""
    masked = fully_masked(run) if run.config.attention.kind != "none" else None
    if masked is None or not masked.any():
        return []
    by_row = masked[:, 0] if masked.ndim == 3 else masked
    rows = list(_rows(np.broadcast_to(by_row, run.inputs.shape)))
    layers = range(run.config.n_layers)
    return [{"stage": f"blocks.{at}.attn.pattern", **row} for at in layers for row in rows]


def _rows(masked: Bools) -> Iterator[View]:
    if masked.ndim == 1:
        yield {"position": np.flatnonzero(masked)}
        return
    for at, row in enumerate(masked):
        if row.any():
            yield {"batch": at, "position": np.flatnonzero(row)}


def next_token(planned: Plan, traced: Trace) -> object:
    """The token of the largest logit at the last position that may be attended to.

    One, or one for each row of a batch; null where the logits were not kept whole.
    """
    logits = traced.whole.get("logits")
    if logits is None:
        return None
    inputs = planned.run.inputs
    if inputs.batch is None:
        return _largest(planned, logits, inputs.key_mask)
    shape = (inputs.batch, inputs.positions)
    masks = None if inputs.key_mask is None else np.broadcast_to(inputs.key_mask, shape)
    return [
        _largest(planned, row, None if masks is None else masks[at])
        for at, row in enumerate(logits)
    ]


def _largest(planned: Plan, logits: Array, key_mask: Bools | None) -> View:
    attended = range(len(logits)) if key_mask is None else np.flatnonzero(key_mask)
    position = int(attended[-1]) if len(attended) else len(logits) - 1
    token_id = int(logits[position].argmax())
    checkpoint = planned.checkpoint
    return {
        "position": position,
        "token_id": token_id,
        "token": None if checkpoint is None else checkpoint.text.piece(token_id),
        "logit": logits[position, token_id],
    }


def _tokens(planned: Plan) -> object:
    token_ids, checkpoint = planned.run.inputs.token_ids, planned.checkpoint
    if token_ids is None or checkpoint is None:
        return None
    return _pieces(token_ids, checkpoint.text.piece)


def _pieces(token_ids: Ints, piece: Callable[[int], str]) -> list[object]:
    if token_ids.ndim > 1:
        return [_pieces(row, piece) for row in token_ids]
    return [piece(int(token_id)) for token_id in token_ids]
