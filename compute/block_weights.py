"""A block's weights, packed the way the products want them, fetched from a source.

W_Q, W_K and W_V lie side by side for one product, heads of W_O stacked for another. Everything is
frozen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from compute import tensors
from compute.config import ModelConfig, NormConfig
from compute.initial import Source
from compute.types import Array, DType


def _nothing() -> Array:
    return np.empty(0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NormWeights:
    """gain (d) = gain_offset + weight; bias (d) or None."""

    gain: Array = field(default_factory=_nothing)
    bias: Array | None = None
    eps: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttentionWeights:
    """W_QKV (d, h k + g k + g v), b_QKV alike or None, W_O (h, v, d), b_O (d) or None.

    q_norm, k_norm: gains (k), or (h, k) and (g, k) over the full width. sinks (h) or None.
    """

    W_QKV: Array = field(default_factory=_nothing)
    b_QKV: Array | None = None
    W_O: Array = field(default_factory=_nothing)
    b_O: Array | None = None
    q_norm: NormWeights = NormWeights()
    k_norm: NormWeights = NormWeights()
    sinks: Array = field(default_factory=_nothing)
    n_heads: int = 0
    n_kv_heads: int = 0
    d_head: int = 0
    d_value: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CrossWeights:
    """W_Q (d, h k) reads the stream, W_KV (d, g k + g v) the memory; W_O (h, v, d)."""

    W_Q: Array = field(default_factory=_nothing)
    b_Q: Array | None = None
    W_KV: Array = field(default_factory=_nothing)
    b_KV: Array | None = None
    W_O: Array = field(default_factory=_nothing)
    b_O: Array | None = None
    n_heads: int = 0
    n_kv_heads: int = 0
    d_head: int = 0
    d_value: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FfnWeights:
    """W_in, W_gate (d, f), W_out (f, d) and their biases; of experts with a leading axis e.

    W_router (d, e), b_router (e); of the shared expert W_shared_in, W_shared_gate (d, u),
    W_shared_out (u, d), W_shared_weight (d, 1).
    """

    W_in: Array = field(default_factory=_nothing)
    b_in: Array | None = None
    W_gate: Array = field(default_factory=_nothing)
    b_gate: Array | None = None
    W_out: Array = field(default_factory=_nothing)
    b_out: Array | None = None
    W_router: Array = field(default_factory=_nothing)
    b_router: Array | None = None
    W_shared_in: Array = field(default_factory=_nothing)
    W_shared_gate: Array = field(default_factory=_nothing)
    W_shared_out: Array = field(default_factory=_nothing)
    W_shared_weight: Array = field(default_factory=_nothing)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockWeights:
    """One block; a part the config lacks is empty, and no equation reads it."""

    norm1: NormWeights
    attention: AttentionWeights
    norm1_post: NormWeights
    norm_cross: NormWeights
    cross: CrossWeights
    norm2: NormWeights
    ffn: FfnWeights
    norm2_post: NormWeights


class Bench:
    """Fetches a config's tensors from a source, frozen, of one dtype; nothing where absent."""

    def __init__(
        self,
        config: ModelConfig,
        listed: Mapping[str, tensors.Tensor],
        source: Source,
        dtype: DType,
        prefix: str = "",
    ) -> None:
        self.config = config
        self.dtype = dtype
        self._listed = listed
        self._source = source
        self._prefix = prefix

    def encoder(self, config: ModelConfig) -> "Bench":
        return Bench(config, self._listed, self._source, self.dtype, tensors.ENCODER)

    def maybe(self, name: str) -> Array | None:
        return self.take(name) if self._prefix + name in self._listed else None

    def take(self, name: str) -> Array:
        tensor = self._listed.get(self._prefix + name)
        if tensor is None:
            return _nothing()
        fetched = self._source(tensor)
        with np.errstate(over="ignore"):  # stored wider than asked: inf, and a trace says so
            return frozen(np.asarray(fetched, self.dtype))  # rows or columns first: as it lies


def frozen(values: Array) -> Array:
    """A view of the values that cannot be written through."""
    view = values.view()
    view.flags.writeable = False
    return view


def block(bench: Bench, prefix: str) -> BlockWeights:
    has_attention = bench.config.attention.kind != "none"
    crosses = bench.config.cross_attention
    return BlockWeights(
        norm1=norm(bench, f"{prefix}norm1"),
        attention=_attention(bench, f"{prefix}attn.") if has_attention else AttentionWeights(),
        norm1_post=norm(bench, f"{prefix}norm1_post"),
        norm_cross=norm(bench, f"{prefix}norm_cross"),
        cross=_cross(bench, f"{prefix}cross.") if crosses else CrossWeights(),
        norm2=norm(bench, f"{prefix}norm2"),
        ffn=_ffn(bench, f"{prefix}ffn."),
        norm2_post=norm(bench, f"{prefix}norm2_post"),
    )


def norm(bench: Bench, name: str) -> NormWeights:
    norm: NormConfig = bench.config.norm
    weight = bench.take(f"{name}.weight")
    return NormWeights(
        gain=frozen(norm.gain_offset + weight) if norm.gain_offset else weight,
        bias=bench.maybe(f"{name}.bias"),
        eps=norm.eps,
    )


def _attention(bench: Bench, prefix: str) -> AttentionWeights:
    attention = bench.config.attention
    W_QKV, b_QKV = _packed(bench, prefix, "QKV")
    return AttentionWeights(
        W_QKV=W_QKV,
        b_QKV=b_QKV,
        W_O=bench.take(prefix + "W_O"),
        b_O=bench.maybe(prefix + "b_O"),
        q_norm=norm(bench, prefix + "q_norm"),
        k_norm=norm(bench, prefix + "k_norm"),
        sinks=bench.take(prefix + "sinks"),
        n_heads=attention.n_heads,
        n_kv_heads=attention.n_kv_heads,
        d_head=attention.d_head,
        d_value=attention.d_value,
    )


def _cross(bench: Bench, prefix: str) -> CrossWeights:
    attention = bench.config.attention
    W_Q, b_Q = _packed(bench, prefix, "Q")
    W_KV, b_KV = _packed(bench, prefix, "KV")
    return CrossWeights(
        W_Q=W_Q,
        b_Q=b_Q,
        W_KV=W_KV,
        b_KV=b_KV,
        W_O=bench.take(prefix + "W_O"),
        b_O=bench.maybe(prefix + "b_O"),
        n_heads=attention.n_heads,
        n_kv_heads=attention.n_kv_heads,
        d_head=attention.d_head,
        d_value=attention.d_value,
    )


def _packed(bench: Bench, prefix: str, letters: str) -> tuple[Array, Array | None]:
    """The matrices of these letters side by side, and their biases end to end."""
    matrices = [bench.take(f"{prefix}W_{letter}") for letter in letters]
    biases = [bench.maybe(f"{prefix}b_{letter}") for letter in letters]
    widths = [W.shape[0] * W.shape[2] for W in matrices]
    return frozen(_side_by_side(matrices, widths)), _packed_bias(biases, widths, matrices[0])


def _side_by_side(matrices: list[Array], widths: list[int]) -> Array:
    """(h, d, k), (g, d, k), … -> (d, h k + g k + …), each written once to its place.

    Columns first where the matrices lie so, as torch stores them: a copy across would take longer
    than the products.
    """
    rows, columns = matrices[0].shape[1], sum(widths)
    across = matrices[0].strides[1] == matrices[0].itemsize
    packed = (
        np.empty((columns, rows), matrices[0].dtype).T
        if across
        else (np.empty((rows, columns), matrices[0].dtype))
    )
    starts = np.cumsum([0, *widths])
    for W, start, width in zip(matrices, starts, widths, strict=False):
        heads, _, each = W.shape
        place = packed[:, start : start + width]
        by_head = (
            place.T.reshape(heads, each, rows).swapaxes(1, 2)
            if across
            else (place.reshape(rows, heads, each).swapaxes(0, 1))
        )
        np.copyto(by_head, W)
    return packed


def _packed_bias(biases: list[Array | None], widths: list[int], like: Array) -> Array | None:
    """The biases end to end, zeros where one is off; None where all are."""
    if all(bias is None for bias in biases):
        return None
    pairs = zip(biases, widths, strict=True)
    parts = [np.zeros(width, like.dtype) if b is None else b.reshape(-1) for b, width in pairs]
    return frozen(np.concatenate(parts))


def _ffn(bench: Bench, prefix: str) -> FfnWeights:
    return FfnWeights(
        W_in=bench.take(prefix + "W_in"),
        b_in=bench.maybe(prefix + "b_in"),
        W_gate=bench.take(prefix + "W_gate"),
        b_gate=bench.maybe(prefix + "b_gate"),
        W_out=bench.take(prefix + "W_out"),
        b_out=bench.maybe(prefix + "b_out"),
        W_router=bench.take(prefix + "W_router"),
        b_router=bench.maybe(prefix + "b_router"),
        W_shared_in=bench.take(prefix + "W_shared_in"),
        W_shared_gate=bench.take(prefix + "W_shared_gate"),
        W_shared_out=bench.take(prefix + "W_shared_out"),
        W_shared_weight=bench.take(prefix + "W_shared_weight"),
    )
