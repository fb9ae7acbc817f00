"""Attention split by head, by (head, source position), or into its biases and the rest."""

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from compute.contributions.parts import (
    Group,
    Label,
    largest_column,
    largest_row,
    listed,
    no_size,
    one,
    product,
)
from compute.contributions.seen import Seen
from compute.contributions.sublayers import Split, Sublayer, Way
from compute.types import Array


def by_head(sub: Sublayer, seen: Seen) -> Iterator[Group]:
    """Σ_m A_nm (V_m - b_V) W_O^(r) for each head r; b_V W_O^(r), b_O and a norm's bias apart."""
    w, z, way = sub.heads(seen), seen[f"{sub.part}.z"], sub.way(seen)
    own = z - _through(sub, seen)
    ids = [_id(sub, head) for head in range(w.n_heads)]
    width = w.n_heads * w.d_value
    yield listed(ids, partial(_projected, own, w.W_O, way), partial(_size, z, w.W_O, way), width)
    yield from _biases(sub, seen, way)


def by_source(sub: Sublayer, seen: Seen) -> Iterator[Group]:
    """A_nm (V_m - b_V) W_O^(r) for each head r and source position m; biases apart."""
    w, way = sub.heads(seen), sub.way(seen)
    A, V = seen[f"{sub.part}.pattern"], seen.stages[f"{sub.part}.v"]
    b_V = _b_V(sub, seen)
    size = partial(_size, seen[f"{sub.part}.z"], w.W_O, way)
    for head in range(w.n_heads):
        kv_head = head // (w.n_heads // w.n_kv_heads)
        own = partial(_from_sources, A[:, head], V[kv_head], b_V[kv_head], w.W_O[head], way)
        yield Group(
            count=V.shape[-2],
            label=partial(_source_label, _id(sub, head)),
            vectors=own,
            size=no_size if head else size,  # of all heads together, told once
            width=max(w.n_heads * w.d_value, V.shape[-2]),
        )
    yield from _biases(sub, seen, way)


def biases_apart(sub: Sublayer, seen: Seen) -> Iterator[Group]:
    """What all heads write but for b_V and b_O, as one part; those and a norm's bias apart."""
    w, way = sub.heads(seen), sub.way(seen)
    raw = seen[sub.raw] - _fixed(w.b_O)
    if _has_b_V(sub):
        raw = raw - _routed(_through(sub, seen), w.W_O, slice(None)).sum(axis=1)
    yield one(sub.part, way.push(raw[:, None])[:, 0])
    yield from _biases(sub, seen, way)


def _biases(sub: Sublayer, seen: Seen, way: Way) -> Iterator[Group]:
    """b_V through each head, b_O, and the bias of the norm behind them."""
    w, rows = sub.heads(seen), len(seen.rows.positions)
    if _has_b_V(sub):
        through = _through(sub, seen)
        ids = [f"{_id(sub, head)}.b_V" for head in range(w.n_heads)]
        size = partial(_size, through, w.W_O, way)
        yield listed(ids, partial(_projected, through, w.W_O, way), size)
    if w.b_O is not None:
        b_O = np.broadcast_to(_fixed(w.b_O), (rows, 1, w.b_O.size))
        yield one(_bias_id(sub), way.push(b_O)[:, 0])
    yield from way.bias(rows)


def _size(x: Array, W_O: Array, way: Way) -> float:
    """How large the terms of Σ_r x_r W_O^(r) are, before they cancel: (R, h, v), (h, v, d)."""
    return way.size(largest_row(x, 2) * largest_column(W_O))


def _projected(x: Array, W_O: Array, way: Way, some: slice) -> Array:
    return way.push(_routed(x, W_O, some))


def _routed(x: Array, W_O: Array, some: slice) -> Array:
    """x_r W_O^(r) of some heads: (R, h, v), (h, v, d) -> (R, p, d)."""
    made = product(x[:, some].swapaxes(0, 1), W_O[some])
    return np.ascontiguousarray(made.swapaxes(0, 1))


def _from_sources(A: Array, V: Array, b_V: Array, W_O: Array, way: Way, some: slice) -> Array:
    """A_nm (V_m - b_V) W_O^(r) of some m: (R, m), (m, v), (v), (v, d) -> (R, p, d)."""
    values = product(V[some].astype(np.float64) - b_V, W_O)
    return way.push(A[:, some, None] * values)


def _through(sub: Sublayer, seen: Seen) -> Array:
    """(Σ_m A_nm) b_V of each head: (R, h, v).

    A row of A sums to 1, with a sink to what it leaves, with no key allowed to 0.
    """
    w = sub.heads(seen)
    per_head = np.repeat(_b_V(sub, seen), w.n_heads // w.n_kv_heads, axis=0)
    return _row_sums(sub, seen)[..., None] * per_head


def _row_sums(sub: Sublayer, seen: Seen) -> Array:
    """Σ_m A_nm: (R, h), or (R, 1) where it is the same for every head."""
    if sub.name == "attn" and sub.config.attention.sinks:
        return 1.0 - seen[f"{sub.part}.sink"] if _has_b_V(sub) else np.ones((1, 1))
    masked = seen.masked.get(f"{sub.part}.pattern")
    rows = len(seen.rows.positions)
    return np.ones((rows, 1)) if masked is None else np.where(masked, 0.0, 1.0)[:, None]


def _b_V(sub: Sublayer, seen: Seen) -> Array:
    """(g, v), zeros where there is none."""
    w = sub.heads(seen)
    size = w.n_kv_heads * w.d_value
    packed = w.b_KV if sub.name == "cross" else w.b_QKV  # type: ignore[union-attr]
    if packed is None:
        return np.zeros((w.n_kv_heads, w.d_value))
    return packed[-size:].reshape(w.n_kv_heads, w.d_value).astype(np.float64)


def _has_b_V(sub: Sublayer) -> bool:
    return sub.config.attention.bias.v


def _fixed(bias: Array | None) -> Array:
    return np.zeros(()) if bias is None else bias.astype(np.float64)


def _id(sub: Sublayer, head: int) -> str:
    """`blocks.0.head.2`, of cross-attention `blocks.0.cross.head.2`."""
    return f"{sub.prefix}{'cross.' if sub.name == 'cross' else ''}head.{head}"


def _bias_id(sub: Sublayer) -> str:
    return f"{sub.prefix}{'cross.' if sub.name == 'cross' else ''}b_O"


def _source_label(name: str, row: int, at: int) -> Label:
    return Label(name, at)


def _with_b_V(sub: Sublayer) -> set[str]:
    sinks = sub.name == "attn" and sub.config.attention.sinks
    return {f"{sub.part}.sink"} if sinks and _has_b_V(sub) else set()


def _head_needs(sub: Sublayer) -> set[str]:
    return {f"{sub.part}.z"} | _with_b_V(sub) | sub.way_needs()


def _source_needs(sub: Sublayer) -> set[str]:
    return {f"{sub.part}.pattern", f"{sub.part}.v"} | _head_needs(sub)


def _apart_needs(sub: Sublayer) -> set[str]:
    return {sub.raw} | _with_b_V(sub) | sub.way_needs()


def _bias_count(sub: Sublayer) -> int:
    bias, heads = sub.config.attention.bias, sub.config.attention.n_heads
    return heads * bias.v + bias.o + sub.way_count()


def _head_count(sub: Sublayer, lengths: Mapping[str, int]) -> int:
    return sub.config.attention.n_heads + _bias_count(sub)


def _source_count(sub: Sublayer, lengths: Mapping[str, int]) -> int:
    sources = lengths["s" if sub.name == "cross" else "m"]
    return sub.config.attention.n_heads * sources + _bias_count(sub)


def _apart_count(sub: Sublayer, lengths: Mapping[str, int]) -> int:
    return 1 + _bias_count(sub)


BY_HEAD = Split(_head_needs, by_head, _head_count)
BY_SOURCE = Split(_source_needs, by_source, _source_count)
BIASES_APART = Split(_apart_needs, biases_apart, _apart_count)
