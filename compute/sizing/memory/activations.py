"""Activations of a forward pass that keeps nothing: buffers are used again.

The stream, B·n·d numbers, is there throughout; beside it stands what the sublayer that runs holds.
A sublayer's update is written over its normed input, a pattern over its scores, an activation over
its input, norms of what is read out over the stream. The peak is the moment that holds most.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from compute.config import FfnConfig, ModelConfig, reads_out
from compute.sizing import architecture
from compute.sizing.architecture import Stack
from compute.sizing.formats import ActivationFormat
from compute.sizing.ledger import Ledger, Part, joined
from compute.sizing.memory.activation_blocks import Rows
from compute.sizing.memory.activation_training import Training, read_out, rows_of, training
from compute.sizing.quantity import Quantity, number, q
from compute.sizing.vocabulary import Head, Workload
from compute.tensors import has_gate

__all__ = ["Moment", "Peak", "Training", "decode_step", "inference_peak", "training"]


Live = Iterator[tuple[str, Quantity]]
"""(name, bytes) of what a sublayer holds beside the stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A step of the pass and everything that is live in it, the stream too."""

    id: str
    ledger: Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The live set of each moment, and the one that holds most."""

    moments: Sequence[Moment]

    @property
    def moment(self) -> Moment:
        """The first of the largest."""
        return max(self.moments, key=lambda moment: moment.ledger.total)

    @property
    def ledger(self) -> Ledger:
        """Bytes at the peak."""
        return self.moment.ledger


def inference_peak(config: ModelConfig, workload: Workload, form: ActivationFormat) -> Peak:
    """The peak of a pass over `tokens` positions behind `cached` ones.

    An encoder has run before where anything is cached: its memory and the keys and values of
    cross-attention stand in the cache then.
    """
    past = q("past", workload.cached) if workload.cached else number(0)
    return _peak(config, workload, form, q("n", workload.tokens), past)


def decode_step(config: ModelConfig, workload: Workload, form: ActivationFormat) -> Peak:
    """The peak of the pass of one more position, behind all t others."""
    past = q("T", workload.cached + workload.tokens + workload.new)
    return _peak(config, workload, form, number(1), past)


def _peak(
    config: ModelConfig, workload: Workload, form: ActivationFormat, n: Quantity, past: Quantity
) -> Peak:
    found: list[Moment] = []
    for stack in architecture.stacks(config):
        rows = rows_of(stack, workload, form)
        if not stack.is_encoder:
            found += _moments(stack, replace(rows, n=n), past)
        elif not past.value:
            found += _moments(stack, rows, past)
    return Peak(moments=found)


def _moments(stack: Stack, rows: Rows, past: Quantity) -> Iterator[Moment]:
    config, d = stack.config, architecture.letters(stack.config)["d"]
    always = [Part(id="stream", each=rows.of(d))]
    if config.cross_attention and not past.value:
        always.append(Part(id="memory", each=rows.of_source(d)))
    for name, held in _live_sets(stack, rows, past):
        live = (Part(id=part, each=size) for part, size in held)
        ledger = Ledger(unit="bytes", parts=joined((always, live)), kind="estimate")
        yield Moment(id=stack.prefix + name, ledger=ledger)


def _live_sets(stack: Stack, rows: Rows, past: Quantity) -> Iterator[tuple[str, Live]]:
    """What each sublayer of a stack holds beside the stream, and the readout."""
    config = stack.config
    if config.attention.kind != "none":
        yield "blocks.attn", _attention(config, rows, past)
    if config.cross_attention:
        yield "blocks.cross", _cross(config, rows, fresh=not past.value)
    for kind in architecture.by_ffn(stack):
        if kind.ffn.kind != "none":
            yield f"blocks.{kind.prefix[:-1]}", _ffn(config, kind.ffn, kind.prefix, rows)
    if reads_out(config):
        yield "unembed", _logits(config, rows)


def _attention(config: ModelConfig, rows: Rows, past: Quantity) -> Live:
    """Input, queries, keys, values, the pattern where it is written out, the heads' mixtures."""
    x = architecture.letters(config)
    keys = rows.n + past
    yield "norm1.out", rows.of(x["d"])
    if config.norm.shared:
        yield "attn_out", rows.of(x["d"])
    yield "attn.q", rows.of(x["h"] * x["k"])
    if config.attention.mla is not None:
        yield from _latent(x, rows, keys)
    else:
        yield "attn.k", rows.of(x["g"] * x["k"])
        yield "attn.v", rows.of(x["g"] * x["v"])
    if rows.form.kernel == "materialised":
        pairs = rows.n * keys if past.value else rows.n**2
        yield "attn.pattern", rows.batch * x["h"] * pairs * rows.a
    yield "attn.z", rows.of(x["h"] * x["v"])


def _latent(x: Mapping[str, Quantity], rows: Rows, keys: Quantity) -> Live:
    """Latent numbers of the rows; keys and values of all positions, made from the latent ones."""
    if x["r_q"].value:
        yield "attn.q_latent", rows.of(x["r_q"])
    yield "attn.kv_latent", rows.of(x["r_kv"])
    yield "attn.k_rope", rows.of(x["k_rope"])
    yield "attn.k", rows.batch * keys * x["h"] * x["k"] * rows.a
    yield "attn.v", rows.batch * keys * x["h"] * x["v"] * rows.a


def _cross(config: ModelConfig, rows: Rows, *, fresh: bool) -> Live:
    """The same of cross-attention; its keys and values only where they are not cached yet."""
    x = architecture.letters(config)
    yield "norm_cross.out", rows.of(x["d"])
    yield "cross.q", rows.of(x["h"] * x["k"])
    if fresh:
        yield "cross.k", rows.of_source(x["g"] * x["k"])
        yield "cross.v", rows.of_source(x["g"] * x["v"])
    if rows.form.kernel == "materialised":
        yield "cross.pattern", rows.batch * x["h"] * rows.n * rows.source * rows.a
    yield "cross.z", rows.of(x["h"] * x["v"])


def _ffn(config: ModelConfig, ffn: FfnConfig, prefix: str, rows: Rows) -> Live:
    """Input, hidden numbers, the gate's; of a mixture those of all chosen experts at once."""
    x = architecture.letters(replace(config, ffn=ffn))
    width = x["f"].named("f_dense") if prefix == "ffn.dense." else x["f"]
    names = ("hidden", "gate") if has_gate(ffn) else ("hidden",)
    yield "norm2.out", rows.of(x["d"])
    if config.topology == "parallel":
        yield "attn_out", rows.of(x["d"])
    if ffn.kind == "moe":
        yield f"{prefix}router", rows.of(x["e"])
        yield f"{prefix}expert_out", rows.of(x["c"] * x["d"])
        width = x["c"] * width
    for name in names:
        yield prefix + name, rows.of(width)
    if ffn.d_shared:
        for name in names:
            yield f"{prefix}shared_{name}", rows.of(x["u"])


def _logits(config: ModelConfig, rows: Rows) -> Live:
    default: Head = "last" if config.attention.mask == "causal" else "all"
    read = read_out(rows.n, rows.form.head or default)
    yield "logits", rows.batch * read * architecture.letters(config)["V"] * rows.a
