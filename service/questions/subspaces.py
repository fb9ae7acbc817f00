"""POST /v1/subspaces: what a model's weights say of its heads."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from compute import cost as sizes
from compute.circuits import cost, writing
from compute.circuits.asked import Question
from compute.circuits.heads import HeadId, in_range
from compute.circuits.subspace import Spans
from compute.config import ModelConfig, reads_out
from compute.errors import Fault, Place, QuestionError, refuse_if
from compute.weights import ModelWeights
from schemas.subspaces import HeadAsked, SubspacesRequest
from service import dry_runs, limits, modelled, views
from service.calls import Check
from service.modelled import Modelled
from service.questions import subspace_notes
from service.questions.subspace_heads import Rows, View, head_views
from service.questions.subspace_pairs import (
    angles_view,
    composition_view,
    ffn_view,
    overlap_view,
    reads_view,
)
from service.state import State

_ADVICE = "Ask for fewer heads or readers, or for fewer measures at a time."
_ALL_ARRAYS = ("singular_values", "basis")
"""Measures that are lists of numbers and nothing else."""

_OF_CIRCUITS = {"qk", "ov", "token_copying", "composition"}
"""All other measures start from the write subspaces."""


def work(asked: SubspacesRequest, here: State, check: Check) -> Mapping[str, object]:
    """The members of the answer."""
    check()
    with modelled.of(asked.model, asked.dtype, here, check) as model:
        question = _question(asked, model.config)
        tokens = _tokens(asked, model)
        width = sizes.BYTES[asked.dtype]
        elements = cost.elements(question)
        need = limits.Need(
            elements=sum(elements.values()),
            bytes=cost.held_bytes(question, width),
            flops=cost.flops(question),
            parts=list(elements.items()),
            in_arrays=sum(elements.get(name, 0) for name in _ALL_ARRAYS),
        )
        if asked.dry_run:
            return dry_runs.answer(model, need, "float64", _ADVICE)
        total = limits.check_need(need, "float64", here.settings, _ADVICE, model.form)
        weighted = model.weights(total)
        with np.errstate(under="ignore"):
            found = dict(_measured(question, weighted.weights, tokens, check))
        return {
            "model": views.model(model, weighted),
            "fold_norm": asked.fold_norm,
            "heads": found.pop("heads"),
            **({} if asked.tokens is None else {"tokens": _token_views(tokens, model)}),
            **found,
            "notes": subspace_notes.notes(question),
        }


def _measured(
    question: Question, weights: ModelWeights, tokens: Sequence[int], check: Check
) -> Iterator[tuple[str, object]]:
    spans: Sequence[Spans] = ()
    if question.ask - _OF_CIRCUITS:
        spans = writing.write_spans(weights, question.heads, check)
    rows = _rows(question, weights, tokens)
    yield "heads", head_views(question, weights, spans, rows, check)
    if "overlap" in question.ask:
        yield "overlap", overlap_view(question, spans, check)
    if "angles" in question.ask:
        yield "angles", angles_view(question, spans, check)
    if "reads" in question.ask:
        yield "reads", reads_view(question, weights, spans, check)
    if "ffn" in question.ask:
        yield "ffn", ffn_view(question, weights, spans, check)
    if "composition" in question.ask:
        yield "composition", composition_view(question, weights, check)


def _rows(question: Question, weights: ModelWeights, tokens: Sequence[int]) -> Rows:
    if not tokens:
        return Rows()
    chosen = list(tokens)
    read_out = in_range(weights.W_U[:, chosen]) if "ov" in question.ask else None
    return Rows(embedded=in_range(weights.W_E[chosen]), read_out=read_out)


def _question(asked: SubspacesRequest, config: ModelConfig) -> Question:
    """The question with every head by its number from the start, or a QuestionError."""
    if config.attention.kind == "none":
        raise QuestionError([_no("no_heads", "This model has no attention: no heads.", ("model",))])
    faults: list[Fault] = []
    heads = _heads(asked.heads, "heads", config, faults)
    own = "readers" in asked.model_fields_set
    readers = _heads(asked.readers, "readers", config, faults) if own else heads
    if config.ffn.kind == "none" and "ffn" in asked.ask:
        place = ("ask", asked.ask.index("ffn"))
        faults.append(_no("no_ffn", "This model has no feed-forward networks.", place))
    if not reads_out(config) and "token_copying" in asked.ask:
        place = ("ask", asked.ask.index("token_copying"))
        faults.append(_no("no_readout", "This model reads nothing out.", place))
    refuse_if(QuestionError, faults)
    return Question(
        config=config,
        heads=heads,
        readers=readers,
        ask=frozenset(asked.ask),
        tokens=len(asked.tokens or ()),
        fold_norm=asked.fold_norm,
    )


def _every(config: ModelConfig) -> Sequence[HeadId]:
    heads = range(config.attention.n_heads)
    return [HeadId(block, head) for block in range(config.n_layers) for head in heads]


def _heads(
    asked: Sequence[HeadAsked] | None, key: str, config: ModelConfig, faults: list[Fault]
) -> Sequence[HeadId]:
    """The heads that are listed, or all; what is wrong with them goes into `faults`."""
    if asked is None:
        return _every(config)
    blocks, heads = config.n_layers, config.attention.n_heads
    found: dict[HeadId, int] = {}
    for at, one in enumerate(asked):
        lengths = (("block", one.block, blocks), ("head", one.head, heads))
        wrong = [x for x in lengths if not -x[2] <= x[1] < x[2]]
        faults += [_out_of_range((key, at, name), name, count) for name, _, count in wrong]
        head = HeadId(one.block % blocks, one.head % heads)
        if not wrong and head in found:
            faults.append(_no("repeated", "This head is listed before.", (key, at)))
        found.setdefault(head, at)
    return list(found)


def _out_of_range(place: Place, name: str, count: int) -> Fault:
    detail = f"There are {count} {name}s: 0 to {count - 1}, or from the end."
    return _no("index_out_of_range", detail, place)


def _no(code: str, detail: str, place: Place) -> Fault:
    return Fault(code=code, detail=detail, place=place)


def _tokens(asked: SubspacesRequest, model: Modelled) -> Sequence[int]:
    """The ids of the tokens, all that are none refused at once."""
    if asked.tokens is None:
        return ()
    if model.config.vocab is None:
        raise QuestionError([_no("no_vocab", "This model has no vocab: no tokens.", ("tokens",))])
    if "ov" in asked.ask and not reads_out(model.config):
        detail = "This model reads nothing out: ask for qk alone, or without tokens."
        raise QuestionError([_no("no_readout", detail, ("tokens",))])
    ids: list[int] = []
    faults: list[Fault] = []
    for at, token in enumerate(asked.tokens):
        try:
            ids.append(model.token(token, ("tokens", at)))
        except QuestionError as error:
            faults += error.faults
    refuse_if(QuestionError, faults)
    return ids


def _token_views(tokens: Sequence[int], model: Modelled) -> Sequence[View]:
    text = model.text
    return [{"id": x, "text": None if text is None else text.piece(x)} for x in tokens]
