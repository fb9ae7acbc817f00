"""What an answer says of pairs: overlaps, angles, reads, networks and composition."""

from collections.abc import Callable, Sequence

import numpy as np

from compute.circuits import angles, baseline, composition, networks, reading, writing
from compute.circuits.asked import Question
from compute.circuits.cost import LARGEST_PAIRS
from compute.circuits.heads import Float64, HeadId, by_block, kv_head_of
from compute.circuits.networks import Network
from compute.circuits.reading import Reader
from compute.circuits.subspace import Spans
from compute.weights import ModelWeights
from service.questions.subspace_heads import View, baseline_view

Check = Callable[[], None]


def overlap_view(question: Question, spans: Sequence[Spans], check: Check) -> View:
    """Of each two heads."""
    ranks = _ranks(question, spans)
    found = writing.overlaps(question.heads, spans, check)
    return _overlap(question, found, ranks, ranks)


def angles_view(question: Question, spans: Sequence[Spans], check: Check) -> Sequence[View]:
    """Of each two heads, once."""
    found = writing.pairwise_angles(question.heads, spans, check)
    return [{"heads": [i, j], "degrees": degrees} for i, j, degrees in found]


def reads_view(
    question: Question, weights: ModelWeights, spans: Sequence[Spans], check: Check
) -> View:
    """W_Q, W_K and W_V of later heads, then what networks read with."""
    found = reading.reads(
        question.config,
        weights,
        question.heads,
        spans,
        question.readers,
        fold_norm=question.fold_norm,
        with_angles="angles" in question.ask,
        check=check,
    )
    theirs = _networks(question, weights, spans, question.read_matrices, check)
    heads = zip(found.readers, found.ranks, strict=True)
    widths = [_width(question, reader) for reader in found.readers]
    view = _met(
        question,
        spans,
        columns=[_column(reader, rank) for reader, rank in heads] + _network_columns(theirs),
        overlap=_beside(found.overlap, [network.overlap for network in theirs]),
        weighted=_beside(found.weighted, [network.weighted for network in theirs]),
        widths=widths + [network.width for network in theirs],
    )
    return view if found.degrees is None else {**view, "degrees": found.degrees}


def ffn_view(
    question: Question, weights: ModelWeights, spans: Sequence[Spans], check: Check
) -> View:
    """W_out of every block's network."""
    theirs = _networks(question, weights, spans, ("W_out",), check)
    nothing = np.empty((len(question.heads), 0))
    return _met(
        question,
        spans,
        columns=_network_columns(theirs),
        overlap=_beside(nothing, [network.overlap for network in theirs]),
        weighted=_beside(nothing, [network.weighted for network in theirs]),
        widths=[network.width for network in theirs],
    )


def composition_view(question: Question, weights: ModelWeights, check: Check) -> View:
    """Each kind as a grid, with its largest entries by name."""
    found = composition.composition(
        question.config,
        weights,
        question.heads,
        question.readers,
        fold_norm=question.fold_norm,
        check=check,
    )
    attention, d = question.config.attention, question.config.d_model
    widths = {"q": attention.d_head, "k": attention.d_head, "v": attention.d_value}
    readers = [
        {**_named(head), "kv_head": kv_head_of(head.head, question.config)}
        for head in question.readers
    ]
    kinds = {
        kind: {
            "score": found[kind],
            "baseline": baseline_view(baseline.of_composition(d, attention.d_value, width)),
            "largest": _largest(question, found[kind]),
        }
        for kind, width in widths.items()
    }
    return {"readers": readers, **kinds}


def _largest(question: Question, scores: Float64) -> Sequence[View]:
    """The pairs with the largest scores; equal ones in the order of the grid."""
    flat = scores.reshape(-1)
    order = np.argsort(-flat, kind="stable")[:LARGEST_PAIRS]  # nan comes last
    there = [int(at) for at in order if not np.isnan(flat[at])]
    return [
        {
            "writer": _named(question.heads[at // scores.shape[1]]),
            "reader": _named(question.readers[at % scores.shape[1]]),
            "score": float(flat[at]),
        }
        for at in there
    ]


def _named(head: HeadId) -> View:
    return {"block": head.block, "head": head.head}


def _networks(
    question: Question,
    weights: ModelWeights,
    spans: Sequence[Spans],
    matrices: Sequence[str],
    check: Check,
) -> Sequence[Network]:
    return networks.networks(
        question.config,
        weights,
        question.heads,
        spans,
        question.blocks,
        matrices=matrices,
        fold_norm=question.fold_norm,
        check=check,
    )


def _met(
    question: Question,
    spans: Sequence[Spans],
    *,
    columns: Sequence[View],
    overlap: Float64,
    weighted: Float64,
    widths: Sequence[int],
) -> View:
    """Heads in rows against the matrices in columns, each score beside its baseline."""
    d, v = question.config.d_model, question.config.attention.d_value
    ranks = np.array([column["rank"] for column in columns], np.float64)
    chance = [baseline_view(baseline.of_product(d, v, width)) for width in widths]
    return {
        "columns": columns,
        "overlap": _overlap(question, overlap, _ranks(question, spans), ranks),
        "weighted": {"score": weighted, "baseline": chance},
    }


def _overlap(question: Question, score: Float64, p: Float64, q: Float64) -> View:
    """A grid of overlaps and what random subspaces of the ranks p (rows) and q (columns) have."""
    grid = np.broadcast_arrays(p[:, None], q[None, :])
    mean, std = angles.expected_overlap(grid[0], grid[1], question.config.d_model)
    unread = np.isnan(score)
    return {
        "score": score,
        "baseline": {
            "mean": np.where(unread, np.nan, mean),
            "std": np.where(unread, np.nan, std),
        },
    }


def _ranks(question: Question, spans: Sequence[Spans]) -> Float64:
    """The rank of each head's write subspace, in the order asked for."""
    ranks = np.empty(len(question.heads))
    for places, span in zip(by_block(question.heads).values(), spans, strict=True):
        ranks[places] = span.ranks
    return ranks


def _beside(grid: Float64, more: Sequence[Float64]) -> Float64:
    return np.column_stack([grid, *more])


def _column(reader: Reader, rank: int) -> View:
    return {
        "block": reader.block,
        "matrix": reader.matrix,
        "head": reader.head,
        "kv_head": reader.kv_head,
        "rank": rank,
    }


def _network_columns(found: Sequence[Network]) -> list[View]:
    return [
        {"block": x.block, "matrix": x.matrix, "head": None, "kv_head": None, "rank": x.rank}
        for x in found
    ]


def _width(question: Question, reader: Reader) -> int:
    attention = question.config.attention
    return attention.d_value if reader.matrix == "W_V" else attention.d_head
