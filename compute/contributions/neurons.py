"""The ffn split by neuron, or into its output bias and the rest; of experts likewise."""

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from compute.block_weights import FfnWeights
from compute.contributions.parts import (
    Group,
    Label,
    largest_column,
    largest_row,
    one,
)
from compute.contributions.seen import Seen
from compute.contributions.sublayers import Split, Sublayer, Way
from compute.types import Array, Ints


def by_neuron(sub: Sublayer, seen: Seen) -> Iterator[Group]:
    """hidden_f W_out[f] for each neuron f; b_out and a norm's bias apart."""
    if sub.config.ffn.kind == "moe":
        yield from _by_expert(sub, seen)
        return
    w, way = sub.block(seen).ffn, sub.way(seen)
    hidden = seen[f"{sub.part}.hidden"]
    yield Group(
        count=hidden.shape[-1],
        label=partial(_neuron, sub.part),
        vectors=partial(_written, hidden, w.W_out, way),
        size=lambda: way.size(largest_row(hidden, 1) * largest_column(w.W_out)),
        width=hidden.shape[-1],
    )
    yield from _biases(sub, seen, way)


def biases_apart(sub: Sublayer, seen: Seen) -> Iterator[Group]:
    """The ffn's output but for b_out, as one part; b_out and a norm's bias apart."""
    w, way = sub.block(seen).ffn, sub.way(seen)
    raw = seen[sub.raw]
    if w.b_out is not None:
        raw = raw - (_chosen_biases(sub, seen, w).sum(axis=1) if _is_moe(sub) else w.b_out)
    yield one(sub.part, way.push(raw[:, None])[:, 0])
    yield from _biases(sub, seen, way)


def _by_expert(sub: Sublayer, seen: Seen) -> Iterator[Group]:
    """weight_e hidden_f W_out^(e)[f] for each expert that a token chose; the shared one whole."""
    w, way = sub.block(seen).ffn, sub.way(seen)
    experts = seen.stages[f"{sub.part}.experts"]
    hidden = seen[f"{sub.part}.expert_hidden"]
    weighed = seen[f"{sub.part}.expert_weights"][..., None] * hidden
    for choice in range(experts.shape[-1]):
        yield Group(
            count=hidden.shape[-1],
            label=partial(_expert_neuron, sub.part, experts[:, choice]),
            vectors=partial(_chosen, weighed[:, choice], w.W_out, experts[:, choice], way),
            size=partial(_size, weighed[:, choice], w.W_out, experts[:, choice], way),
            width=hidden.shape[-1],
        )
    if sub.config.ffn.d_shared:
        shared = seen[f"{sub.part}.shared_out"]
        yield one(f"{sub.part}.shared", way.push(shared[:, None])[:, 0])
    yield from _biases(sub, seen, way)


def _biases(sub: Sublayer, seen: Seen, way: Way) -> Iterator[Group]:
    w, rows = sub.block(seen).ffn, len(seen.rows.positions)
    if w.b_out is not None and _is_moe(sub):
        experts = seen.stages[f"{sub.part}.experts"]
        biases = _chosen_biases(sub, seen, w)
        yield Group(
            count=experts.shape[-1],
            label=partial(_expert_bias, sub.part, experts),
            vectors=lambda some: way.push(np.array(biases[:, some])),
        )
    elif w.b_out is not None:
        b_out = np.broadcast_to(w.b_out.astype(np.float64), (rows, 1, w.b_out.size))
        yield one(f"{sub.part}.b_out", way.push(b_out)[:, 0])
    yield from way.bias(rows)


def _chosen_biases(sub: Sublayer, seen: Seen, w: FfnWeights) -> Array:
    """weight_e b_out^(e) of each choice: (R, c, d)."""
    assert w.b_out is not None  # noqa: S101 - the callers looked
    experts = seen.stages[f"{sub.part}.experts"]
    weights = seen[f"{sub.part}.expert_weights"]
    return weights[..., None] * w.b_out[experts]


def _written(hidden: Array, W_out: Array, way: Way, some: slice) -> Array:
    """hidden_f W_out[f] of some neurons: (R, f), (f, d) -> (R, p, d)."""
    return way.push(hidden[:, some, None] * W_out[some])


def _chosen(hidden: Array, W_out: Array, experts: Ints, way: Way, some: slice) -> Array:
    """The same of the expert that each row chose: (R, f), (e, f, d), (R) -> (R, p, d)."""
    return way.push(hidden[:, some, None] * W_out[experts, some])


def _size(hidden: Array, W_out: Array, experts: Ints, way: Way) -> float:
    """How large the terms of hidden W_out are, of the experts of each row."""
    columns = [largest_column(W_out[int(expert)]) for expert in np.unique(experts)]
    return way.size(largest_row(hidden, 1) * max(columns))


def _is_moe(sub: Sublayer) -> bool:
    return sub.config.ffn.kind == "moe"


def _neuron(part: str, row: int, at: int) -> Label:
    return Label(f"{part}.neuron.{at}")


def _expert_neuron(part: str, experts: Ints, row: int, at: int) -> Label:
    return Label(f"{part}.expert.{experts[row]}.neuron.{at}")


def _expert_bias(part: str, experts: Ints, row: int, at: int) -> Label:
    return Label(f"{part}.expert.{experts[row, at]}.b_out")


def _choice_needs(sub: Sublayer) -> set[str]:
    return {f"{sub.part}.experts", f"{sub.part}.expert_weights"}


def _neuron_needs(sub: Sublayer) -> set[str]:
    if not _is_moe(sub):
        return {f"{sub.part}.hidden"} | sub.way_needs()
    shared = {f"{sub.part}.shared_out"} if sub.config.ffn.d_shared else set()
    hidden = {f"{sub.part}.expert_hidden"}
    return hidden | shared | _choice_needs(sub) | sub.way_needs()


def _apart_needs(sub: Sublayer) -> set[str]:
    chosen = _choice_needs(sub) if _is_moe(sub) and sub.config.ffn.bias.out else set()
    return {sub.raw} | chosen | sub.way_needs()


def _bias_count(sub: Sublayer) -> int:
    ffn = sub.config.ffn
    return (ffn.top_k if _is_moe(sub) else 1) * ffn.bias.out + sub.way_count()


def _neuron_count(sub: Sublayer, lengths: Mapping[str, int]) -> int:
    ffn = sub.config.ffn
    written = ffn.top_k * ffn.d_ff + (ffn.d_shared > 0) if _is_moe(sub) else ffn.d_ff
    return written + _bias_count(sub)


def _apart_count(sub: Sublayer, lengths: Mapping[str, int]) -> int:
    return 1 + _bias_count(sub)


BY_NEURON = Split(_neuron_needs, by_neuron, _neuron_count)
BIASES_APART = Split(_apart_needs, biases_apart, _apart_count)
