"""What an answer says of each head by itself: its write subspace and its circuits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compute.circuits import baseline, factored, heads, subspace, vocabulary
from compute.circuits.asked import Question
from compute.circuits.baseline import Baseline
from compute.circuits.factored import Circuits, Complex
from compute.circuits.heads import Float64, Heads
from compute.circuits.subspace import Spans
from compute.config import block_config
from compute.weights import ModelWeights

View = dict[str, object]
Check = Callable[[], None]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Of the tokens asked for: W_E (t, d), W_U (d, t); None where nothing asked needs them."""

    embedded: Float64 | None = None
    read_out: Float64 | None = None


def baseline_view(found: Baseline) -> View:
    """Mean and standard deviation."""
    return {"mean": found.mean, "std": found.std}


def head_views(
    question: Question, weights: ModelWeights, spans: Sequence[Spans], rows: Rows, check: Check
) -> Sequence[View]:
    """A member for each head, in the order asked for. spans: of each block that has heads."""
    views: list[View] = [
        {
            "block": head.block,
            "head": head.head,
            "kv_head": heads.kv_head_of(head.head, question.config),
        }
        for head in question.heads
    ]
    if spans:
        check()
        _add_subspaces(views, question, spans)
    if question.ask & {"qk", "ov"}:
        _add_circuits(views, question, weights, rows, check)
    if "token_copying" in question.ask:
        _add_token_copying(views, question, weights, check)
    return views


def _add_subspaces(views: list[View], question: Question, spans: Sequence[Spans]) -> None:
    by_block = heads.by_block(question.heads)
    for places, span in zip(by_block.values(), spans, strict=True):
        for at, place in enumerate(places):
            views[place].update(_subspace(question, span, at))


def _subspace(question: Question, span: Spans, at: int) -> View:
    found: View = {}
    values = span.singular_values[at]
    if "rank" in question.ask:
        found["rank"] = span.ranks[at]
    if "singular_values" in question.ask:
        found["singular_values"] = values
    if "effective_rank" in question.ask:
        measures = {
            "effective_rank": subspace.effective_rank(values),
            "participation_ratio": subspace.participation_ratio(values),
        }
        found.update((name, _score(question, name, score)) for name, score in measures.items())
    if "basis" in question.ask:
        found["basis"] = np.ascontiguousarray(span.basis(at))
    return found


def _score(question: Question, name: str, score: Float64) -> View:
    chance = baseline.of_head(question.config.d_model, question.config.attention.d_value)
    return {"score": float(score), "baseline": baseline_view(chance[name])}


def _add_circuits(
    views: list[View], question: Question, weights: ModelWeights, rows: Rows, check: Check
) -> None:
    for block, places in heads.by_block(question.heads).items():
        check()
        made = heads.gathered(
            question.config, weights, question.heads, places, fold_norm=question.fold_norm
        )
        asked = {name: circuits_of(made) for name, circuits_of in _CIRCUITS if name in question.ask}
        scale = block_config(question.config, block).attention.scale
        for name, circuits in asked.items():
            members = _MEMBERS[name](question, circuits, rows, scale)
            for place, view in zip(places, members, strict=True):
                views[place][name] = view


def _add_token_copying(
    views: list[View], question: Question, weights: ModelWeights, check: Check
) -> None:
    config = question.config
    returned = vocabulary.readout_of_embedding(weights, check)
    chance = baseline.of_token_copying(
        config.d_model, config.attention.d_value, weights.W_E.shape[0]
    )
    for places in heads.by_block(question.heads).values():
        check()
        made = heads.gathered(config, weights, question.heads, places, fold_norm=question.fold_norm)
        copied = factored.copying(vocabulary.through_tokens(made, returned).eigenvalues())
        for place, score in zip(places, copied, strict=True):
            views[place]["token_copying"] = {
                "score": float(score),
                "baseline": baseline_view(chance),
            }


_CIRCUITS: Sequence[tuple[str, Callable[[Heads], Circuits]]] = (
    ("qk", factored.qk),
    ("ov", factored.ov),
)


def _spectra(circuits: Circuits) -> tuple[list[View], Complex]:
    """Norm, singular values and eigenvalues of each circuit."""
    singular_values, eigenvalues = circuits.singular_values(), circuits.eigenvalues()
    views: list[View] = [
        {
            "norm": float(np.linalg.norm(values)),
            "singular_values": values,
            "eigenvalues": np.stack([roots.real, roots.imag], axis=-1),
        }
        for values, roots in zip(singular_values, eigenvalues, strict=True)
    ]
    return views, eigenvalues


def _qk(question: Question, circuits: Circuits, rows: Rows, scale: float) -> list[View]:
    views, _ = _spectra(circuits)
    if rows.embedded is not None:
        scores = circuits.between(rows.embedded, rows.embedded.T)
        for view, of_head in zip(views, scores, strict=True):
            view["token_scores"] = of_head * scale
    return views


def _ov(question: Question, circuits: Circuits, rows: Rows, scale: float) -> list[View]:
    views, eigenvalues = _spectra(circuits)
    for view, copied in zip(views, factored.copying(eigenvalues), strict=True):
        view["copying"] = _score(question, "copying", copied)
    if rows.embedded is not None and rows.read_out is not None:
        logits = circuits.between(rows.embedded, rows.read_out)
        for view, of_head in zip(views, logits, strict=True):
            view["token_logits"] = of_head
    return views


Members = Callable[[Question, Circuits, Rows, float], list[View]]
_MEMBERS: Mapping[str, Members] = {"qk": _qk, "ov": _ov}
