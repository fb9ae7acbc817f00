"""What one block keeps of a forward pass until its backward pass: each tensor once, with its bytes.

A product keeps its input, a norm its input, an activation its input, a softmax its output, dropout
a mask of one byte a number. T = B·n rows, a bytes a number. With h·k = h·v = g·k = g·v = d, an mlp
of 4d, two layernorms, a = 2 and dropout: 34·B·n·d + 5·B·h·n². Korthikanti et al.,
arXiv:2205.05198, equation 1.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from compute.config import FfnConfig, ModelConfig
from compute.sizing import architecture
from compute.sizing.formats import ActivationFormat
from compute.sizing.quantity import Quantity, q
from compute.tensors import has_gate

LSE_BYTES = 4
"""Of a flash kernel's log-sum-exp, float32, a number for each head and row."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor that a block keeps. `core`: the attention that it is made by, where it is
    made again from queries, keys and values when attention is recomputed."""

    name: str
    bytes: Quantity
    core: str = ""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a stack: B sequences of n, and s that its cross-attention reads."""

    batch: Quantity
    n: Quantity
    source: Quantity
    form: ActivationFormat

    @property
    def a(self) -> Quantity:
        """Bytes of a number."""
        return q("a", self.form.bytes)

    def of(self, width: Quantity) -> Quantity:
        """Bytes of so many numbers a row: B·n·width·a."""
        return self.batch * self.n * width * self.a

    def of_source(self, width: Quantity) -> Quantity:
        """Bytes of so many numbers a row of the memory: B·s·width·a."""
        return self.batch * self.source * width * self.a

    def mask(self, width: Quantity) -> Quantity:
        """Bytes of a dropout mask."""
        return self.batch * self.n * width


def around_ffn(config: ModelConfig, rows: Rows) -> Iterator[Tensor]:
    """Everything that a block keeps but for the inside of its ffn."""
    d = architecture.letters(config)["d"]
    yield from (Tensor(name, rows.of(d)) for name in _stream(config))
    if config.attention.kind != "none":
        yield from _latent(config, rows) if config.attention.mla else _projected(config, rows)
        yield from _core(config, rows, "attn", rows.n)
        yield from _output(config, rows, "attn")
    if config.cross_attention:
        yield from _crossed(config, rows)
        yield from _core(config, rows, "cross", rows.source)
        yield from _output(config, rows, "cross")
    if config.ffn.kind != "none" and rows.form.dropout:
        yield Tensor("ffn_out.mask", rows.mask(d))


def _stream(config: ModelConfig) -> list[str]:
    """Tensors of d numbers a row: what norms read and what sublayers read, each once."""
    norm, parallel = config.norm, config.topology == "parallel"
    is_at = {norm.placement} if norm.kind != "none" else set()
    before, after = is_at & {"pre", "sandwich"}, is_at & {"sandwich", "output"}
    attends, feeds = config.attention.kind != "none", config.ffn.kind != "none"
    middle = "resid_cross" if config.cross_attention else "resid_mid"
    wanted = {
        "resid_pre": True,
        "norm1.out": attends and before,
        "attn.out_raw": attends and after,
        "attn_sum": attends and "post" in is_at,
        "resid_mid": attends and config.cross_attention,
        "norm_cross.out": config.cross_attention and before,
        "cross_sum": config.cross_attention and "post" in is_at,
        middle: attends and (feeds or config.cross_attention) and not parallel,
        "norm2.out": feeds and before and not norm.shared,
        "ffn.out_raw": feeds and after,
        "ffn_sum": feeds and "post" in is_at,
    }
    return [name for name, is_kept in wanted.items() if is_kept]


def _projected(config: ModelConfig, rows: Rows) -> Iterator[Tensor]:
    """Queries, keys, values; before qk-norm too, which reads them."""
    x = architecture.letters(config)
    yield Tensor("attn.q", rows.of(x["h"] * x["k"]))
    yield Tensor("attn.k", rows.of(x["g"] * x["k"]))
    yield Tensor("attn.v", rows.of(x["g"] * x["v"]))
    if config.attention.qk_norm != "none":
        yield Tensor("attn.q_norm", rows.of(x["h"] * x["k"]))
        yield Tensor("attn.k_norm", rows.of(x["g"] * x["k"]))


def _latent(config: ModelConfig, rows: Rows) -> Iterator[Tensor]:
    """Latent numbers before and after their norms, then what the heads read of them."""
    x, normed = architecture.letters(config), config.norm.kind != "none"
    if x["r_q"].value:
        yield Tensor("attn.q_latent", rows.of(x["r_q"]))
        if normed:
            yield Tensor("attn.q_latent_norm", rows.of(x["r_q"]))
    yield Tensor("attn.kv_latent", rows.of(x["r_kv"]))
    if normed:
        yield Tensor("attn.kv_latent_norm", rows.of(x["r_kv"]))
    yield Tensor("attn.q", rows.of(x["h"] * x["k"]))
    yield Tensor("attn.k", rows.of(x["h"] * x["k"]))
    yield Tensor("attn.v", rows.of(x["h"] * x["v"]))


def _crossed(config: ModelConfig, rows: Rows) -> Iterator[Tensor]:
    x = architecture.letters(config)
    yield Tensor("cross.q", rows.of(x["h"] * x["k"]))
    yield Tensor("cross.k", rows.of_source(x["g"] * x["k"]))
    yield Tensor("cross.v", rows.of_source(x["g"] * x["v"]))


def _core(config: ModelConfig, rows: Rows, name: str, keys: Quantity) -> Iterator[Tensor]:
    """Of scores to mixture: the pattern, and with dropout its mask and what is left of it."""
    heads, form = architecture.letters(config)["h"], rows.form
    if form.kernel == "flash":
        lse = LSE_BYTES * rows.batch * heads * rows.n
        yield Tensor(f"{name}.log_sum_exp", lse, name)
        return
    square = rows.n**2 if keys is rows.n else rows.n * keys
    pairs = rows.batch * heads * square
    if config.attention.softcap is not None:
        yield Tensor(f"{name}.capped_scores", pairs * rows.a, name)
    yield Tensor(f"{name}.pattern", pairs * rows.a, name)
    if form.dropout:
        yield Tensor(f"{name}.pattern.mask", pairs, name)
        yield Tensor(f"{name}.pattern.dropped", pairs * rows.a, name)


def _output(config: ModelConfig, rows: Rows, name: str) -> Iterator[Tensor]:
    x = architecture.letters(config)
    yield Tensor(f"{name}.z", rows.of(x["h"] * x["v"]))
    if rows.form.dropout:
        yield Tensor(f"{name}_out.mask", rows.mask(x["d"]))


def inside_ffn(config: ModelConfig, ffn: FfnConfig, prefix: str, rows: Rows) -> Iterator[Tensor]:
    """The inside of one kind of ffn. A mixture: of each row, what its c chosen experts keep."""
    if ffn.kind == "none":
        return
    x = architecture.letters(replace(config, ffn=ffn))
    width = x["f"].named("f_dense") if prefix == "ffn.dense." else x["f"]
    if ffn.kind == "moe":
        yield Tensor(f"{prefix}router", rows.of(x["e"]))
        width = x["c"] * width
    for name in hidden_names(ffn):
        yield Tensor(prefix + name, rows.of(width))
    if ffn.kind == "moe":
        yield Tensor(f"{prefix}expert_out", rows.of(x["c"] * x["d"]))
        yield from _shared(ffn, prefix, rows, x)


def hidden_names(ffn: FfnConfig) -> tuple[str, ...]:
    """What an ffn has of f numbers a row: before its activation, its gate, what W_out reads."""
    return ("up", "gate", "hidden") if has_gate(ffn) else ("up", "hidden")


def _shared(ffn: FfnConfig, prefix: str, rows: Rows, x: Mapping[str, Quantity]) -> Iterator[Tensor]:
    if not ffn.d_shared:
        return
    for name in hidden_names(ffn):
        yield Tensor(f"{prefix}shared_{name}", rows.of(x["u"]))
    if ffn.shared_gate:
        yield Tensor(f"{prefix}shared_out", rows.of(x["d"]))
        yield Tensor(f"{prefix}shared_weight", rows.of(q("1", 1)))
