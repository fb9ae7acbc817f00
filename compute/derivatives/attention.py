"""The Steps of attention and cross-attention, beside `compute.attention`."""

from collections.abc import Callable, Generator, Mapping
from functools import partial

from compute import ops
from compute.config import ModelConfig
from compute.derivatives import operations
from compute.derivatives.norms import qk_norm
from compute.derivatives.steps import Here, Step, Steps, Values
from compute.types import Array, Bools

Pulled = tuple[Array, ...]
Pair = tuple[str, str]
Meeting = Generator[Step, None, Pair]


def attention(config: ModelConfig, U: str, name: str) -> Steps:
    """name = Σ_r H_r W_O^(r) + b_O,  H = A V,  A = softmax(mask(scale · Q K^T))."""
    yield Step("attn.q", (U,), (), _queries)
    yield Step("attn.k", (U,), (), _keys)
    yield Step("attn.v", (U,), (), _values)
    normed = yield from qk_norm(config, ("attn.q", "attn.k"))
    meeting = yield from TURNS.get(config.position.kind, unrotated)(normed)
    yield Step("attn.scores", meeting, meeting, _scores, mixes=meeting[1:])
    yield from (sink_pattern if config.attention.sinks else plain_pattern)()
    mixed = ("attn.pattern", "attn.v")
    yield Step("attn.z", mixed, mixed, _mixed, mixes=mixed[1:])
    yield Step(name, ("attn.z",), (), _joined)
    return name


def unrotated(normed: Pair) -> Meeting:
    """Q and K as they are."""
    return normed
    yield  # steps, though none


def rotated(normed: Pair) -> Meeting:
    """Q and K turned by their positions."""
    yield Step("attn.q_rot", normed[:1], (), _turned)
    yield Step("attn.k_rot", normed[1:], (), _turned)
    return "attn.q_rot", "attn.k_rot"


TURNS: Mapping[str, Callable[[Pair], Meeting]] = {"rope": rotated}
"""By `position.kind`; the others leave queries and keys as they are."""


def plain_pattern() -> Steps:
    """A = softmax(S)."""
    yield Step("attn.pattern", ("attn.scores",), ("attn.pattern",), _softmax)
    return "attn.pattern"


def sink_pattern() -> Steps:
    """A, and what the head's sink takes of each row."""
    yield from plain_pattern()
    yield Step("attn.sink", ("attn.scores",), ("attn.pattern", "attn.sink"), _sink)
    return "attn.pattern"


def cross_attention(config: ModelConfig, C: str, memory: str, name: str) -> Steps:
    """The same with keys and values from a memory; nothing is turned."""
    yield Step("cross.q", (C,), (), _cross_queries)
    yield Step("cross.k", (memory,), (), _cross_keys)
    yield Step("cross.v", (memory,), (), _cross_values)
    meeting = ("cross.q", "cross.k")
    yield Step("cross.scores", meeting, meeting, _cross_scores, mixes=meeting[1:])
    yield Step("cross.pattern", ("cross.scores",), ("cross.pattern",), _softmax)
    mixed = ("cross.pattern", "cross.v")
    yield Step("cross.z", mixed, mixed, _mixed, mixes=mixed[1:])
    yield Step(name, ("cross.z",), (), _cross_joined)
    return name


def _queries(c: Array, values: Values, here: Here) -> Pulled:
    w = here.block.attention
    return (operations.heads(c, w.W_QKV[:, : w.n_heads * w.d_head]),)


def _keys(c: Array, values: Values, here: Here) -> Pulled:
    w = here.block.attention
    start = w.n_heads * w.d_head
    return (operations.heads(c, w.W_QKV[:, start : start + w.n_kv_heads * w.d_head]),)


def _values(c: Array, values: Values, here: Here) -> Pulled:
    w = here.block.attention
    start = (w.n_heads + w.n_kv_heads) * w.d_head
    return (operations.heads(c, w.W_QKV[:, start:]),)


def _turned(c: Array, values: Values, here: Here) -> Pulled:
    """y = R(p) x:  x̄ = R(p)^T ȳ, the turn by the opposite angle."""
    turn = here.setting.turn
    assert isinstance(turn, partial)  # noqa: S101 - positions.rotated, with its angles
    pair, cos, sin = turn.args
    return (pair(c, here.cut(cos), -here.cut(sin)),)


def _scores(c: Array, values: Values, here: Here) -> Pulled:
    return _dots(_allowed(c, here.setting.forbidden, here), values, here)


def _cross_scores(c: Array, values: Values, here: Here) -> Pulled:
    return _dots(_allowed(c, here.setting.memory_forbidden, here), values, here)


def _allowed(c: Array, forbidden: Bools | None, here: Here) -> Array:
    return c if forbidden is None else operations.allowed(c, here.cut(forbidden))


def _dots(c: Array, values: Values, here: Here) -> Pulled:
    """Through cap(scale · Q K^T); a bias is constant."""
    (Q, K), s = values, here.setting
    scaled = c if s.softcap is None else operations.capped(c, ops.scores(Q, K, s.scale), s.softcap)
    return operations.dots(scaled, Q, K, s.scale)


def _softmax(c: Array, values: Values, here: Here) -> Pulled:
    return (operations.softmax(c, values[0]),)


def _sink(c: Array, values: Values, here: Here) -> Pulled:
    return (operations.sink(c, *values),)


def _mixed(c: Array, values: Values, here: Here) -> Pulled:
    return operations.mix(c, *values)


def _joined(c: Array, values: Values, here: Here) -> Pulled:
    return (operations.join_heads(c, here.block.attention.W_O),)


def _cross_queries(c: Array, values: Values, here: Here) -> Pulled:
    return (operations.heads(c, here.block.cross.W_Q),)


def _cross_keys(c: Array, values: Values, here: Here) -> Pulled:
    w = here.block.cross
    return (operations.heads(c, w.W_KV[:, : w.n_kv_heads * w.d_head]),)


def _cross_values(c: Array, values: Values, here: Here) -> Pulled:
    w = here.block.cross
    return (operations.heads(c, w.W_KV[:, w.n_kv_heads * w.d_head :]),)


def _cross_joined(c: Array, values: Values, here: Here) -> Pulled:
    return (operations.join_heads(c, here.block.cross.W_O),)
