"""Bytes of JSON that a trace's tensors take: a bound that none is beyond, and an estimate.

Numbers print shortest. At the longest: float32 `-0.0000012345679`, 16 characters (of all 2³²,
one by one); float64 `-0.000012345678901234567` and `-2.2250738585072014e-308`, 24: 17 digits with
a sign, a point, and five more. Brackets and commas follow from shapes, to the byte.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from math import inf, log10, prod
from operator import mul
from types import MappingProxyType

from compute import stages
from compute.config import ModelConfig
from compute.selection import Wanted
from compute.types import AXES

LONGEST: Mapping[str, int] = MappingProxyType({"float32": 16, "float64": 24})
"""Characters of a number at its longest, without a comma."""

ZERO, NULL, ONE = len("0.0"), len("null"), len("1.0")

MASKED: Mapping[str, float] = MappingProxyType(
    {"attn.scores": NULL, "attn.pattern": ZERO, "attn.source_out": ZERO + 0.5}
)
"""What a pair that may not meet takes: null, 0.0, and half of the time -0.0."""

SUMMARIES = ("norm", "rms", "mean", "min", "max")

_MEAN = {"float32": 9.95, "float64": 18.65}
"""Of bell-shaped numbers about as large as 1."""

_AWAY = {
    **dict.fromkeys(("attn.head_out", "cross.head_out"), 0.6),
    **dict.fromkeys(("attn.z", "cross.z", "attn_out", "cross_out", "ffn_out"), 0.25),
    **dict.fromkeys(("attn.out_raw", "cross.out_raw", "ffn.out_raw", "ffn.shared_out"), 0.25),
    **dict.fromkeys(("embed", "type_embed"), 0.6),
    "attn.sink": 0.3,
    "attn.source_out": 1.2,
    **dict.fromkeys(("ffn.shared_weight", "ffn.expert_weights"), -0.2),
    "pos_embed": 0.2,
}
"""What small numbers take beyond that: a zero behind the point for each power of ten."""

_SCALE = -0.8
"""A norm's scale has no sign, and is about 1."""

_CURVED, _BILINEAR, _HALF_ZERO = 0.55, 0.1, {"relu": 0.4, "relu2": 2.0}
"""Of the numbers that activations give; the last two of those that are not 0."""

_PATTERN = -0.35
_TINY = 1.5  # a pattern's smallest weights have an exponent: no more zeros than these


def brackets(shape: Sequence[int]) -> int:
    """2 for each list: the whole, shape[0] in it, shape[0] · shape[1] in those, and so on."""
    return 2 * sum(accumulate(shape[:-1], mul, initial=1))


def between(shape: Sequence[int]) -> int:
    """All of a tensor's text but its numbers: brackets, and a comma less than there are numbers."""
    return brackets(shape) + prod(shape) - 1


def longest(wanted: Wanted, lengths: Mapping[str, int], dtype: str) -> int:
    """Characters of a stage's number at most; a null, and what `nonfinite` says of it, included.

    A null of its own kind takes 4, and 9 with its offset's digits: `null` and `[offset,1],`.
    """
    if wanted.stage.name == "ffn.experts" and not wanted.summary:
        return len(str(lengths["e"] - 1))
    size = prod(lengths[x] for x in stages.axes_of(wanted.stage, "b" in lengths))
    return max(LONGEST[_dtype(wanted, dtype)], 9 + len(str(size)))


def _dtype(wanted: Wanted, dtype: str) -> str:
    return "float64" if wanted.stage.name == "ffn.experts" else dtype


def data_at_most(
    wanted: Wanted, shape: Sequence[int], lengths: Mapping[str, int], dtype: str
) -> int:
    """Characters of a stage's numbers with their brackets and commas; of a summary's five lists."""
    most = longest(wanted, lengths, dtype)
    if not wanted.summary:
        return most * prod(shape) + between(shape)
    return len(SUMMARIES) * (most * prod(shape[:-1]) + between(shape[:-1]))


def around(wanted: Wanted, shape: Sequence[int], name: int, *, batched: bool) -> int:
    """Characters of a tensor's members beside its numbers, in front of them its name's and a
    comma; at most: each symbol is told, each kind of `nonfinite` is there."""
    return name + 4 + sum(_members(wanted, shape, batched))


def _members(wanted: Wanted, shape: Sequence[int], batched: bool) -> Iterator[int]:
    axes = stages.axes_of(wanted.stage, batched)
    shown = axes[:-1] if wanted.summary else axes
    symbol = (wanted.stage.symbol or "").encode()
    yield len('"symbol":,') + max(NULL, len(symbol) + 2)
    yield len('"axes":[],') + sum(len(AXES[x]) + 3 for x in shown)
    yield len('"shape":[],') + sum(len(str(length)) + 1 for length in shape)
    yield len('"dtype":"float64",')
    if wanted.where:
        each = (len(AXES[x]) + 6 + _indices(at) for x, at in wanted.where.items())
        yield len('"index":{},') + sum(each)
    yield len('{"summary":{}}' if wanted.summary else '{"data":}')
    if wanted.summary:
        yield sum(len(f'"{name}":,') for name in SUMMARIES)
    else:
        yield len(',"nonfinite":{"-inf":[],"+inf":[],"nan":[]}')


def _indices(at: Sequence[int]) -> int:
    return sum(len(str(index)) + 1 for index in at)


def mean_of(
    wanted: Wanted, config: ModelConfig, lengths: Mapping[str, int], dtype: str, seen: float = 1.0
) -> float:
    """Characters of a stage's number on average, of seeded weights and inputs; measured.

    config: of the stage's stack. seen: of scores and patterns how many keys a query may attend to.
    """
    name = wanted.stage.name
    if name == "ffn.experts" and not wanted.summary:
        experts = lengths["e"]
        return sum(len(str(expert)) for expert in _spread(experts)) / len(_spread(experts))
    base = _MEAN[_dtype(wanted, dtype)]
    if name.endswith(".scale"):
        return base + _SCALE
    if name.endswith(".pattern"):
        return base + _PATTERN + min(log10(max(seen, 1.0)) + 0.05, 3 + _TINY)
    if name.endswith("hidden"):
        return _of_hidden(config.ffn.activation, base)
    if name == "ffn.expert_weights" and config.ffn.top_k == 1 and config.ffn.renormalize:
        return ONE
    return base + _AWAY.get(name, 0.0)


def _spread(experts: int) -> range:
    return range(0, experts, max(1, experts // 1000))


def _of_hidden(activation: str, base: float) -> float:
    """Half of what relu gives is 0.0."""
    away = _HALF_ZERO.get(activation)
    if away is None:
        return base + (_BILINEAR if activation == "identity" else _CURVED)
    return (ZERO + base + away) / 2


def visible(rows: int, window: int | None, *, causal: bool) -> int:
    """Pairs of `rows` queries with their keys that may meet: Σ_i min(i, w) of a causal mask, and
    of a full one as many again from the other side."""
    if window is None and not causal:
        return rows * rows
    w = rows if window is None else min(window, rows)
    below = w * (w + 1) // 2 + (rows - w) * w
    return below if causal else 2 * below - rows


def visible_of(
    queries: Sequence[int], keys: Sequence[int], window: int | None, *, causal: bool
) -> int:
    """The same among chosen queries and keys."""
    ordered = sorted(keys)
    return sum(
        bisect_right(ordered, _last(at, window, causal))
        - (0 if window is None else bisect_right(ordered, at - window))
        for at in queries
    )


def _last(query: int, window: int | None, causal: bool) -> float:
    if causal:
        return query
    return inf if window is None else query + window - 1
