"""POST /v1/decode: rows after a cache, and the tokens that follow. The work of one thread."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np

from compute import cache, decoding, selection
from compute.checkpoints.tokenizer_rules import LONGEST_TOKEN
from compute.config import reads_out
from compute.decoding import Price, Step
from compute.errors import Fault, QuestionError, SelectionError, refuse_if
from compute.selection import Scene, Selection
from compute.trace import Run
from compute.types import Array, Inputs, Ints, Past
from schemas.decode import DecodeRequest
from service import dry_runs, limits, modelled, views
from service.forms import tensors
from service.forms.tensors import Exact
from service.limits import Need
from service.modelled import Modelled, Weighted
from service.reading import Reading
from service.state import State

_OF_A_TOKEN = 8
"""Numbers that the text of a token of `top` is as long as, with its id, logit and probability."""

_ADVICE = (
    "Ask for fewer steps, stages or slices; logits = false leaves out the logits, "
    "cache_as = none the cache."
)


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """Everything checked and weighed before any weight is made."""

    asked: DecodeRequest
    model: Modelled
    read: Reading
    select: Callable[[Scene], Selection]
    first: Selection
    price: Price
    need: Need


def work(asked: DecodeRequest, state: State, check: Callable[[], None]) -> Mapping[str, object]:
    """The members of the answer to a decode request; `check` may raise to stop the work."""
    with modelled.of(asked.model, asked.dtype, state, check) as model:
        plan = _planned(asked, model)
        weighed, texts = _weighed(plan), partial(_check_texts, plan)
        if asked.dry_run:
            _check_digest(asked, model.weights(0))
            return dry_runs.answer(model, plan.need, asked.dtype, _ADVICE, texts, weighed=weighed)
        total = limits.check_need(weighed, asked.dtype, model.settings, _ADVICE, model.form)
        texts()
        weighted = model.weights(total)
        _check_digest(asked, weighted)
        steps, last = _steps(plan, weighted)
        reason = decoding.inexact(model.config, last.past, last.trace.run.inputs.positions)
        return {
            "model": views.model(model, weighted),
            "input": views.read(model, plan.read),
            "steps": steps,
            "absent": plan.first.absent,
            "exact": reason is None,
            "reason": reason,
            "cache": _cache(asked, model, last.past, weighted.digest),
            "cost": {
                "parameters": plan.price.parameters,
                "flops": plan.need.flops,
                "elements": plan.need.elements,
                "bytes": plan.need.bytes,
            },
        }


def _weighed(plan: _Plan) -> Need:
    """The need, with what running single rows costs beside their products."""
    a_row = (
        limits.BLOCK_FLOPS * plan.model.config.n_layers
        + limits.WEIGHT_FLOPS * plan.price.parameters
    )
    return replace(plan.need, flops=plan.need.flops + plan.asked.steps * a_row)


def _planned(asked: DecodeRequest, model: Modelled) -> _Plan:
    read = model.read(asked.input, past_of=partial(_past, asked, model))
    limits.check_tokens(read.inputs, model.text, model.settings)
    faults = decoding.faults(read.inputs, model.config, asked.steps)
    refuse_if(QuestionError, list(faults))
    rows = read.inputs.keys
    place = ("cache", "position_ids") if rows > model.settings.positions else ("steps",)
    limits.check("positions", rows + asked.steps, model.settings, place=place)
    wanted = decoding.shown(model.config) if asked.select is None else asked.selected()

    def select(scene: Scene) -> Selection:
        return selection.resolve(wanted, scene)

    seen = decoding.scenes(model.config, read.inputs, asked.steps)
    first = _selected(select, seen)
    price = decoding.price(seen, select, asked.steps, asked.dtype)
    return _Plan(asked, model, read, select, first, price, _need(asked, model, read, price))


def _past(asked: DecodeRequest, model: Modelled, rows: Inputs) -> Past | None:
    """The cache as a past that fits the model and the rows after it."""
    sent = asked.cache
    if sent is None:
        return None
    if sent.dtype != asked.dtype:
        detail = f"This cache was made in {sent.dtype}, and the request asks for {asked.dtype}."
        place = ("cache", "dtype")
        fault = Fault(
            code="other_dtype", detail=detail, place=place, expected=asked.dtype, got=sent.dtype
        )
        raise QuestionError([fault])
    named = sent.tensors(asked.dtype)
    return cache.past_of(model.config, rows, named, sent.position_ids, sent.key_mask)


def _selected(select: Callable[[Scene], Selection], seen: tuple[Scene, ...]) -> Selection:
    """The first step's selection; one that does not fit the rows that follow is refused too."""
    first, *after = seen
    found = select(first)
    try:
        for scene in after:
            select(scene)
    except SelectionError as error:
        told = "Each step after the first runs one row."
        faults = [replace(fault, detail=f"{fault.detail} {told}") for fault in error.faults]
        raise SelectionError(faults) from None
    return found


def _need(asked: DecodeRequest, model: Modelled, read: Reading, price: Price) -> Need:
    """Numbers of the answer: the stages, the logits and top tokens of each step, the cache."""
    vocab = (model.config.vocab or 0) if reads_out(model.config) else 0
    ends = (asked.steps + 1) * (read.inputs.batch or 1)
    beside = {
        "logits": ends * vocab if asked.logits else 0,
        "top": ends * min(asked.top, vocab) * _OF_A_TOKEN,
        "cache": 0 if asked.cache_as == "none" else price.cache_elements,
    }
    parts = [(name, count) for name, count in beside.items() if count]
    return Need(
        elements=price.elements + sum(beside.values()),
        bytes=price.bytes,
        flops=price.flops,
        parts=[*price.by_stage.items(), *parts],
        in_arrays=beside["logits"] + beside["cache"],
    )


def _check_texts(plan: _Plan) -> None:
    """Raise TooLarge where the texts of the tokens that are told may be too long together."""
    told = (plan.asked.steps + 1) * (plan.asked.top + 1) * (plan.read.inputs.batch or 1)
    if plan.model.text is not None:
        said = f"The answer names {told:,} tokens: ask for fewer steps, or a smaller top."
        limits.check_characters(told * LONGEST_TOKEN, said, plan.model.settings, ("steps",))


def _check_digest(asked: DecodeRequest, weighted: Weighted) -> None:
    if asked.cache is not None and asked.cache.digest != weighted.digest:
        detail = (
            "This cache was made by another model: its keys and values mean nothing to this one. "
            "Send it with the same model, weights and edits, or run the rows again."
        )
        raise QuestionError([Fault(code="other_model", detail=detail, place=("cache", "digest"))])


def _steps(plan: _Plan, weighted: Weighted) -> tuple[list[Mapping[str, object]], Step]:
    """What is told of each step, and the last one: of those before it no more is kept."""
    run = Run(
        config=plan.model.config,
        weights=weighted.weights,
        inputs=plan.read.inputs,
        selection=plan.first,
        check=plan.model.check,
    )
    told = []
    for step in decoding.continued(run, plan.asked.steps, plan.select):
        told.append(_told(plan, step))
    return told, step


def _told(plan: _Plan, step: Step) -> Mapping[str, object]:
    rows = step.trace.run.inputs
    ids = None if rows.token_ids is None else rows.token_ids[..., -1]
    last = None if step.logits is None else step.logits[..., -1, :]
    return {
        "rows": rows.positions,
        "token_id": None if ids is None else ids.tolist(),
        "token": None if ids is None else _pieces(plan, ids),
        "position": _last_ids(step),
        "top": None if last is None else _top(plan, last),
        "logits": np.array(last) if last is not None and plan.asked.logits else None,
        "tensors": dict(tensors.of_trace(step.trace)),
    }


def _last_ids(step: Step) -> object:
    batch = step.trace.run.inputs.batch
    ids = step.past.position_ids[..., -1]
    return (ids if batch is None else np.broadcast_to(ids, batch)).tolist()


def _pieces(plan: _Plan, ids: Ints) -> object:
    if ids.ndim:
        return [views.piece(plan.model, int(one)) for one in ids]
    return views.piece(plan.model, int(ids))


def _top(plan: _Plan, logits: Array) -> list[object]:
    """The tokens of the largest logits, the largest first; of each row of a batch."""
    if logits.ndim > 1:
        return [_top(plan, row) for row in logits]
    ids, shares = decoding.largest(logits, plan.asked.top)
    return [
        {
            "token_id": int(token_id),
            "token": views.piece(plan.model, int(token_id)),
            "logit": logits[token_id],
            "probability": float(share),
        }
        for token_id, share in zip(ids, shares, strict=True)
    ]


def _cache(asked: DecodeRequest, model: Modelled, past: Past, digest: str) -> object:
    """All rows so far, as a request sends them."""
    if asked.cache_as == "none":
        return None
    heads = chain.from_iterable(zip(past.keys, past.values, strict=True))
    packed = asked.cache_as == "base64"
    names = decoding.remembered(model.config)
    return {
        "digest": digest,
        "dtype": asked.dtype,
        "position_ids": past.position_ids,
        "key_mask": past.key_mask,
        **{name: Exact(values, packed) for name, values in zip(names, heads, strict=True)},
    }
