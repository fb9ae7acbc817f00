"""Which tensors a config has, with their axes and shapes: the one list of weights.

Row vectors throughout: `x @ W`. Axes use the glossary's letters; heads come first.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from types import MappingProxyType
from typing import Literal

from compute.config import ModelConfig, NormConfig
from compute.types import AXES

Role = Literal["matrix", "table", "gain", "bias"]
"""matrix: multiplies; table: looked up by row; gain and bias: of a norm or a product."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named weight: axis letters, shape, what it is, and how many numbers feed one output."""

    name: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    role: Role
    fan_in: int
    part: str

    @property
    def words(self) -> tuple[str, ...]:
        """The axis words, as `where` uses them."""
        return tuple(AXES[letter] for letter in self.axes)

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return prod(self.shape)


_ATTENTION, _FFN = "attention.kind is softmax", "ffn.kind is not none"
_NORM, _LAYERNORM = "norm.kind is not none", "norm.kind is layernorm"

EXISTS: Mapping[str, str] = {
    "embed.W_E": "vocab is given",
    "pos_embed.W_pos": "position.kind is learned",
    "norm1.weight": f"{_ATTENTION} and {_NORM}",
    "norm1.bias": f"{_ATTENTION} and {_LAYERNORM}",
    **dict.fromkeys(("attn.W_Q", "attn.W_K", "attn.W_V", "attn.W_O"), _ATTENTION),
    "attn.b_Q": "attention.bias (or its q) is true",
    "attn.b_K": "attention.bias (or its k) is true",
    "attn.b_V": "attention.bias (or its v) is true",
    "attn.b_O": "attention.bias (or its o) is true",
    "norm2.weight": f"{_FFN} and {_NORM}",
    "norm2.bias": f"{_FFN} and {_LAYERNORM}",
    **dict.fromkeys(("ffn.W_in", "ffn.W_out"), _FFN),
    "ffn.W_gate": "ffn.kind is gated",
    "ffn.b_in": "ffn.bias (or its in) is true",
    "ffn.b_gate": "ffn.kind is gated and ffn.bias (or its gate) is true",
    "ffn.b_out": "ffn.bias (or its out) is true",
    "final_norm.weight": "final_norm is true",
    "final_norm.bias": f"final_norm is true and {_LAYERNORM}",
    "unembed.W_U": "vocab is given and tied is false",
    "unembed.b_U": "unembed_bias is true",
}
"""A tensor's name, without its block -> the configs that have it."""


@lru_cache(maxsize=32)
def tensors(config: ModelConfig) -> Mapping[str, Tensor]:
    """Name -> tensor for every weight of a config, in order of use."""
    return MappingProxyType({tensor.name: tensor for tensor in _all(config)})


def parameter_counts(config: ModelConfig) -> dict[str, int]:
    """Numbers held, by part: total, embedding, matrices, biases, norms, readout."""
    counts = dict.fromkeys(("embedding", "matrices", "biases", "norms", "readout"), 0)
    for tensor in tensors(config).values():
        counts[tensor.part] += tensor.size
    return {"total": sum(counts.values()), **counts}


def packing_size(config: ModelConfig) -> int:
    """Numbers of W_Q, W_K and W_V of a block: they lie there twice while they are packed."""
    names = [f"blocks.0.attn.{name}" for name in ("W_Q", "W_K", "W_V")]
    first = {tensor.name: tensor.size for tensor in _attention("blocks.0.attn.", config)}
    return sum(first[name] for name in names) if config.attention.kind != "none" else 0


def _all(config: ModelConfig) -> Iterator[Tensor]:
    yield from _embedding(config)
    for layer in range(config.n_layers):
        prefix = f"blocks.{layer}."
        if config.attention.kind != "none":
            yield from _norm(f"{prefix}norm1", config)
            yield from _attention(f"{prefix}attn.", config)
        if config.ffn.kind != "none":
            yield from _norm(f"{prefix}norm2", config)
            yield from _ffn(f"{prefix}ffn.", config)
    if config.final_norm:
        yield from _norm("final_norm", config)
    yield from _readout(config)


def widths(config: ModelConfig) -> dict[str, int]:
    """Axis letter -> length, of the axes that the config alone decides."""
    attention = config.attention
    return {
        "d": config.d_model,
        "h": attention.n_heads,
        "g": attention.n_kv_heads,
        "k": attention.d_head,
        "v": attention.d_value,
        "f": config.ffn.d_ff,
        "V": config.vocab or 0,
    }


def _tensor(config: ModelConfig, name: str, axes: str, role: Role, fan: str, part: str) -> Tensor:
    lengths = {**widths(config), "n": config.position.n_positions}
    letters = tuple(axes.split())
    shape = tuple(lengths[letter] for letter in letters)
    return Tensor(name, letters, shape, role, prod(lengths[x] for x in fan.split()), part)


def _embedding(config: ModelConfig) -> Iterator[Tensor]:
    if config.vocab is not None:
        yield _tensor(config, "embed.W_E", "V d", "table", "d", "embedding")
    if config.position.kind == "learned":
        yield _tensor(config, "pos_embed.W_pos", "n d", "table", "d", "embedding")


def _norm(name: str, config: ModelConfig) -> Iterator[Tensor]:
    norm: NormConfig = config.norm
    if norm.kind != "none":
        yield _tensor(config, f"{name}.weight", "d", "gain", "d", "norms")
    if norm.kind == "layernorm":
        yield _tensor(config, f"{name}.bias", "d", "bias", "d", "norms")


def _attention(prefix: str, config: ModelConfig) -> Iterator[Tensor]:
    bias = config.attention.bias
    rows = (
        ("W_Q", "h d k", "d", True),
        ("W_K", "g d k", "d", True),
        ("W_V", "g d v", "d", True),
        ("W_O", "h v d", "h v", True),
        ("b_Q", "h k", "d", bias.q),
        ("b_K", "g k", "d", bias.k),
        ("b_V", "g v", "d", bias.v),
        ("b_O", "d", "d", bias.o),
    )
    yield from _rows(config, prefix, rows)


def _ffn(prefix: str, config: ModelConfig) -> Iterator[Tensor]:
    ffn = config.ffn
    rows = (
        ("W_in", "d f", "d", True),
        ("W_gate", "d f", "d", ffn.kind == "gated"),
        ("W_out", "f d", "f", True),
        ("b_in", "f", "d", ffn.bias.in_),
        ("b_gate", "f", "d", ffn.bias.gate),
        ("b_out", "d", "d", ffn.bias.out),
    )
    yield from _rows(config, prefix, rows)


def _rows(
    config: ModelConfig, prefix: str, rows: tuple[tuple[str, str, str, bool], ...]
) -> Iterator[Tensor]:
    for name, axes, fan, present in rows:
        if present and name.startswith("W"):
            yield _tensor(config, prefix + name, axes, "matrix", fan, "matrices")
        elif present:
            yield _tensor(config, prefix + name, axes, "bias", fan, "biases")


def _readout(config: ModelConfig) -> Iterator[Tensor]:
    if config.vocab is not None and not config.tied:
        yield _tensor(config, "unembed.W_U", "d V", "matrix", "d", "readout")
    if config.unembed_bias:
        yield _tensor(config, "unembed.b_U", "V", "bias", "d", "readout")
