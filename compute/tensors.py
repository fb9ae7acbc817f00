"""Which tensors a config has, with their axes and shapes: the one list of weights.

Row vectors throughout: `x @ W`. Axes use the glossary's letters; heads come first.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from types import MappingProxyType
from typing import Literal

from compute.config import FfnConfig, ModelConfig, NormConfig, reads_out
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
_NORM, _LAYERNORM = "norm.kind is not none", "norm.kind is layernorm and norm.bias is true"
_BEFORE = "norm.placement is not output"
_AFTER = "norm.placement is sandwich or output"
_CROSS, _MOE = "cross_attention is true", "ffn.kind is moe"
_SHARED = "ffn.kind is moe and ffn.d_shared is given"
_MLM = "mlm_head is true"


def _bias_of(name: str) -> str:
    return f"attention.bias (or its {name}) is true"


EXISTS: Mapping[str, str] = {
    "embed.W_E": "vocab is given",
    "pos_embed.W_pos": "position.kind is learned",
    "type_embed.W_type": "token_types is given",
    "rel_bias.W_rel": "position.kind is t5_bias",
    "embed_norm.weight": "embed_norm is true",
    "embed_norm.bias": f"embed_norm is true and {_LAYERNORM}",
    "norm1.weight": f"{_ATTENTION}, {_NORM} and {_BEFORE}",
    "norm1.bias": f"{_ATTENTION}, {_LAYERNORM} and {_BEFORE}",
    **dict.fromkeys(("attn.W_Q", "attn.W_K", "attn.W_V", "attn.W_O"), _ATTENTION),
    **{f"attn.b_{name}": _bias_of(name.lower()) for name in "QKVO"},
    **dict.fromkeys(("attn.q_norm.weight", "attn.k_norm.weight"), "attention.qk_norm is not none"),
    **dict.fromkeys(
        ("attn.q_norm.bias", "attn.k_norm.bias"),
        f"attention.qk_norm is not none and {_LAYERNORM}",
    ),
    "attn.sinks": "attention.sinks is true",
    "norm1_post.weight": f"{_ATTENTION}, {_NORM} and {_AFTER}",
    "norm1_post.bias": f"{_ATTENTION}, {_LAYERNORM} and {_AFTER}",
    "norm_cross.weight": f"{_CROSS} and {_NORM}",
    "norm_cross.bias": f"{_CROSS} and {_LAYERNORM}",
    **dict.fromkeys(("cross.W_Q", "cross.W_K", "cross.W_V", "cross.W_O"), _CROSS),
    **{f"cross.b_{name}": f"{_CROSS} and {_bias_of(name.lower())}" for name in "QKVO"},
    "norm2.weight": f"{_FFN}, {_NORM}, {_BEFORE} and norm.shared is false",
    "norm2.bias": f"{_FFN}, {_LAYERNORM}, {_BEFORE} and norm.shared is false",
    **dict.fromkeys(("ffn.W_in", "ffn.W_out"), _FFN),
    "ffn.W_gate": "ffn.kind is gated, or moe with gated experts",
    "ffn.b_in": "ffn.bias (or its in) is true",
    "ffn.b_gate": "the ffn has a gate and ffn.bias (or its gate) is true",
    "ffn.b_out": "ffn.bias (or its out) is true",
    "ffn.W_router": _MOE,
    "ffn.b_router": f"{_MOE} and ffn.router_bias is true",
    **dict.fromkeys(("ffn.W_shared_in", "ffn.W_shared_out"), _SHARED),
    "ffn.W_shared_gate": f"{_SHARED} and the experts are gated",
    "ffn.W_shared_weight": f"{_SHARED} and ffn.shared_gate is true",
    "norm2_post.weight": f"{_FFN}, {_NORM} and {_AFTER}",
    "norm2_post.bias": f"{_FFN}, {_LAYERNORM} and {_AFTER}",
    "final_norm.weight": "final_norm is true",
    "final_norm.bias": f"final_norm is true and {_LAYERNORM}",
    **dict.fromkeys(("mlm_head.W", "mlm_head.b", "mlm_norm.weight"), _MLM),
    "mlm_norm.bias": f"{_MLM} and {_LAYERNORM}",
    "unembed.W_U": "vocab is given, readout is true and tied is false",
    "unembed.b_U": "unembed_bias is true",
}
"""A tensor's name, without its stack and block -> the configs that have it."""


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
    if config.attention.kind == "none":
        return 0
    listed = tensors(config)
    return sum(listed[f"blocks.0.attn.{name}"].size for name in ("W_Q", "W_K", "W_V"))


ENCODER = "encoder."
"""The prefix of an encoder's tensors and stages."""


def _all(config: ModelConfig) -> Iterator[Tensor]:
    if config.encoder is not None:
        for tensor in _of_encoder(config.encoder):
            yield replace(tensor, name=ENCODER + tensor.name)
    yield from _stack(config)
    yield from _readout(config)


def _of_encoder(encoder: ModelConfig) -> Iterator[Tensor]:
    return (tensor for tensor in _stack(encoder) if tensor.name != "embed.W_E")


def _stack(config: ModelConfig) -> Iterator[Tensor]:
    yield from _embedding(config)
    for layer in range(config.n_layers):
        yield from _block(f"blocks.{layer}.", config)
    if config.final_norm:
        yield from _norm("final_norm", config)


def _block(prefix: str, config: ModelConfig) -> Iterator[Tensor]:
    before = config.norm.placement != "output"
    after = config.norm.placement in ("sandwich", "output")
    if config.attention.kind != "none":
        yield from _norm(f"{prefix}norm1", config) if before else ()
        yield from _attention(f"{prefix}attn.", config)
        yield from _norm(f"{prefix}norm1_post", config) if after else ()
    if config.cross_attention:
        yield from _norm(f"{prefix}norm_cross", config)
        yield from _projections(f"{prefix}cross.", config)
    if config.ffn.kind != "none":
        yield from _norm(f"{prefix}norm2", config) if before and not config.norm.shared else ()
        yield from _moe(f"{prefix}ffn.", config) if config.ffn.kind == "moe" else ()
        yield from _ffn(f"{prefix}ffn.", config)
        yield from _norm(f"{prefix}norm2_post", config) if after else ()


def widths(config: ModelConfig) -> dict[str, int]:
    """Axis letter -> length, of the axes that the config alone decides."""
    attention, ffn = config.attention, config.ffn
    return {
        "d": config.d_model,
        "h": attention.n_heads,
        "g": attention.n_kv_heads,
        "k": attention.d_head,
        "v": attention.d_value,
        "f": ffn.d_ff,
        "e": ffn.n_experts,
        "c": ffn.top_k,
        "u": ffn.d_shared,
        "t": config.token_types,
        "r": config.position.n_buckets,
        "p": config.d_model,
        "V": config.vocab or 0,
    }


def _tensor(config: ModelConfig, name: str, axes: str, role: Role, fan: str, part: str) -> Tensor:
    lengths = {**widths(config), "n": config.position.n_positions, "1": 1}
    letters = tuple(axes.split())
    shape = tuple(lengths[letter] for letter in letters)
    return Tensor(name, letters, shape, role, prod(lengths[x] for x in fan.split()), part)


def _embedding(config: ModelConfig) -> Iterator[Tensor]:
    if config.vocab is not None:
        yield _tensor(config, "embed.W_E", "V d", "table", "d", "embedding")
    if config.position.kind == "learned":
        yield _tensor(config, "pos_embed.W_pos", "n d", "table", "d", "embedding")
    if config.token_types:
        yield _tensor(config, "type_embed.W_type", "t d", "table", "d", "embedding")
    if config.position.kind == "t5_bias":
        yield _tensor(config, "rel_bias.W_rel", "r h", "table", "1", "embedding")
    if config.embed_norm:
        yield from _norm("embed_norm", config)


def _norm(name: str, config: ModelConfig, axes: str = "d") -> Iterator[Tensor]:
    norm: NormConfig = config.norm
    if norm.kind != "none":
        yield _tensor(config, f"{name}.weight", axes, "gain", "d", "norms")
    if norm.kind == "layernorm" and norm.bias:
        yield _tensor(config, f"{name}.bias", axes, "bias", "d", "norms")


def _attention(prefix: str, config: ModelConfig) -> Iterator[Tensor]:
    attention = config.attention
    yield from _projections(prefix, config)
    if attention.qk_norm != "none":
        heads = attention.qk_norm == "full"
        yield from _norm(f"{prefix}q_norm", config, "h k" if heads else "k")
        yield from _norm(f"{prefix}k_norm", config, "g k" if heads else "k")
    if attention.sinks:
        yield _tensor(config, f"{prefix}sinks", "h", "bias", "d", "biases")


def _projections(prefix: str, config: ModelConfig) -> Iterator[Tensor]:
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
    ffn, each = config.ffn, "e " if config.ffn.kind == "moe" else ""
    rows = (
        ("W_in", f"{each}d f", "d", True),
        ("W_gate", f"{each}d f", "d", has_gate(ffn)),
        ("W_out", f"{each}f d", "f", True),
        ("b_in", f"{each}f", "d", ffn.bias.in_),
        ("b_gate", f"{each}f", "d", ffn.bias.gate),
        ("b_out", f"{each}d", "d", ffn.bias.out),
    )
    yield from _rows(config, prefix, rows)


def has_gate(ffn: FfnConfig) -> bool:
    """Whether there is a W_gate: in a gated ffn, and in gated experts."""
    return ffn.kind == "gated" or (ffn.kind == "moe" and ffn.expert == "gated")


def _moe(prefix: str, config: ModelConfig) -> Iterator[Tensor]:
    ffn = config.ffn
    shared = ffn.d_shared > 0
    rows = (
        ("W_router", "d e", "d", True),
        ("b_router", "e", "d", ffn.router_bias),
        ("W_shared_in", "d u", "d", shared),
        ("W_shared_gate", "d u", "d", shared and ffn.expert == "gated"),
        ("W_shared_out", "u d", "u", shared),
        ("W_shared_weight", "d 1", "d", shared and ffn.shared_gate),
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
    if config.mlm_head:
        yield _tensor(config, "mlm_head.W", "d p", "matrix", "d", "readout")
        yield _tensor(config, "mlm_head.b", "p", "bias", "d", "readout")
        yield from _norm("mlm_norm", config)
    if reads_out(config) and not config.tied:
        yield _tensor(config, "unembed.W_U", "d V", "matrix", "d", "readout")
    if config.unembed_bias:
        yield _tensor(config, "unembed.b_U", "V", "bias", "d", "readout")
