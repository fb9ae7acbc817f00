"""A model's weights, packed the way the products want them.

Packed once, when the weights are made: W_Q, W_K and W_V side by side for one product, heads of
W_O stacked for another. Everything is frozen.
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
    """W_QKV (d, h k + g k + g v), b_QKV alike or None, W_O (h, v, d), b_O (d) or None."""

    W_QKV: Array = field(default_factory=_nothing)
    b_QKV: Array | None = None
    W_O: Array = field(default_factory=_nothing)
    b_O: Array | None = None
    n_heads: int = 0
    n_kv_heads: int = 0
    d_head: int = 0
    d_value: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FfnWeights:
    """W_in, W_gate (d, f), W_out (f, d) and their biases."""

    W_in: Array = field(default_factory=_nothing)
    b_in: Array | None = None
    W_gate: Array = field(default_factory=_nothing)
    b_gate: Array | None = None
    W_out: Array = field(default_factory=_nothing)
    b_out: Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockWeights:
    """One block; a part the config lacks is empty, and no equation reads it."""

    norm1: NormWeights
    attention: AttentionWeights
    norm2: NormWeights
    ffn: FfnWeights


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelWeights:
    """W_E (V, d), W_pos (n, d), the blocks, the final norm, W_U (d, V), b_U (V)."""

    dtype: DType
    W_E: Array
    W_pos: Array
    blocks: tuple[BlockWeights, ...]
    final_norm: NormWeights
    W_U: Array
    b_U: Array | None


class _Bench:
    """Fetches a config's tensors from a source, frozen, of one dtype; nothing where absent."""

    def __init__(self, config: ModelConfig, source: Source, dtype: DType) -> None:
        self.config = config
        self._listed: Mapping[str, tensors.Tensor] = tensors.tensors(config)
        self._source = source
        self._dtype = dtype

    def maybe(self, name: str) -> Array | None:
        return self.take(name) if name in self._listed else None

    def take(self, name: str) -> Array:
        if name not in self._listed:
            return _nothing()
        fetched = self._source(self._listed[name])
        with np.errstate(over="ignore"):  # stored wider than asked: inf, and a trace says so
            return frozen(np.ascontiguousarray(fetched, self._dtype))


def frozen(values: Array) -> Array:
    """A view of the values that cannot be written through."""
    view = values.view()
    view.flags.writeable = False
    return view


def build(config: ModelConfig, source: Source, dtype: DType) -> ModelWeights:
    """All weights of a config, fetched tensor by tensor, packed, frozen, of one dtype."""
    bench = _Bench(config, source, dtype)
    W_E = bench.take("embed.W_E")
    return ModelWeights(
        dtype=dtype,
        W_E=W_E,
        W_pos=bench.take("pos_embed.W_pos"),
        blocks=tuple(_block(bench, f"blocks.{layer}.") for layer in range(config.n_layers)),
        final_norm=_norm(bench, "final_norm"),
        W_U=W_E.T if config.tied else bench.take("unembed.W_U"),
        b_U=bench.maybe("unembed.b_U"),
    )


def _block(bench: _Bench, prefix: str) -> BlockWeights:
    has_attention = bench.config.attention.kind != "none"
    return BlockWeights(
        norm1=_norm(bench, f"{prefix}norm1"),
        attention=_attention(bench, f"{prefix}attn.") if has_attention else AttentionWeights(),
        norm2=_norm(bench, f"{prefix}norm2"),
        ffn=_ffn(bench, f"{prefix}ffn."),
    )


def _norm(bench: _Bench, name: str) -> NormWeights:
    norm: NormConfig = bench.config.norm
    weight = bench.take(f"{name}.weight")
    return NormWeights(
        gain=frozen(norm.gain_offset + weight) if norm.gain_offset else weight,
        bias=bench.maybe(f"{name}.bias"),
        eps=norm.eps,
    )


def _attention(bench: _Bench, prefix: str) -> AttentionWeights:
    attention = bench.config.attention
    matrices = [bench.take(prefix + name) for name in ("W_Q", "W_K", "W_V")]
    biases = [bench.maybe(prefix + name) for name in ("b_Q", "b_K", "b_V")]
    return AttentionWeights(
        W_QKV=frozen(np.concatenate([_side_by_side(W) for W in matrices], axis=1)),
        b_QKV=_packed_bias(biases, [W.shape[0] * W.shape[2] for W in matrices], matrices[0]),
        W_O=bench.take(prefix + "W_O"),
        b_O=bench.maybe(prefix + "b_O"),
        n_heads=attention.n_heads,
        n_kv_heads=attention.n_kv_heads,
        d_head=attention.d_head,
        d_value=attention.d_value,
    )


def _side_by_side(W: Array) -> Array:
    """(h, d, k) -> (d, h k)."""
    heads, rows, columns = W.shape
    return W.swapaxes(0, 1).reshape(rows, heads * columns)


def _packed_bias(biases: list[Array | None], widths: list[int], like: Array) -> Array | None:
    """The biases end to end, zeros where one is off; None where all are."""
    if all(bias is None for bias in biases):
        return None
    pairs = zip(biases, widths, strict=True)
    parts = [np.zeros(width, like.dtype) if b is None else b.reshape(-1) for b, width in pairs]
    return frozen(np.concatenate(parts))


def _ffn(bench: _Bench, prefix: str) -> FfnWeights:
    return FfnWeights(
        W_in=bench.take(prefix + "W_in"),
        b_in=bench.maybe(prefix + "b_in"),
        W_gate=bench.take(prefix + "W_gate"),
        b_gate=bench.maybe(prefix + "b_gate"),
        W_out=bench.take(prefix + "W_out"),
        b_out=bench.maybe(prefix + "b_out"),
    )
