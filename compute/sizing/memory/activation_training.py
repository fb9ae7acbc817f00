"""Activations that training holds at once: what blocks keep for the backward pass, and the rest.

recompute none: everything. selective: all but the core of attention, from scores to mixture, which
is made again for one block at a time. full: each block's input, and the rest of it made again for
one block at a time.
Korthikanti et al., arXiv:2205.05198, sections 4 and 5.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compute.config import ModelConfig, reads_out
from compute.sizing import architecture
from compute.sizing.architecture import Stack
from compute.sizing.formats import ActivationFormat
from compute.sizing.ledger import Ledger, Part, joined
from compute.sizing.memory import activation_blocks
from compute.sizing.memory.activation_blocks import Rows, Tensor
from compute.sizing.quantity import Quantity, number, q
from compute.sizing.vocabulary import Head, Recompute, Workload

LOGIT_BYTES = 4
"""Logits stay in float32 for the loss. Korthikanti et al., section 4.3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockKept:
    """What one block of a kind keeps under the recomputation, and how many there are."""

    id: str
    count: int
    ledger: Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Bytes at the height of a training step, and of one block of each kind. `live` parts are
    made again for the one block whose backward pass runs."""

    ledger: Ledger
    per_block: Sequence[BlockKept]


@dataclass(frozen=True, slots=True)
class _Kind:
    """Blocks alike: what one of them holds before anything is left out."""

    id: str
    count: int
    tensors: tuple[Tensor, ...]


def training(config: ModelConfig, workload: Workload, form: ActivationFormat) -> Training:
    """Bytes that a training step over `tokens` positions holds; no cache has a part in it."""
    stacks = [(stack, rows_of(stack, workload, form)) for stack in architecture.stacks(config)]
    kinds = [kind for stack, rows in stacks for kind in _kinds(stack, rows)]
    kept = joined(_blocks(stack, rows) for stack, rows in stacks)
    outside = joined(_outside(stack, rows) for stack, rows in stacks)
    parts = (*kept, *_live(kinds, form.recompute), *outside)
    return Training(
        ledger=Ledger(unit="bytes", parts=parts, kind="estimate", views=("live",)),
        per_block=[_of_block(kind, form.recompute) for kind in kinds],
    )


def rows_of(stack: Stack, workload: Workload, form: ActivationFormat) -> Rows:
    """The rows that a stack runs over: an encoder's are the source's."""
    n, source = q("n", workload.tokens), q("s", workload.source)
    return Rows(q("B", workload.batch), source if stack.is_encoder else n, source, form)


def read_out(n: Quantity, head: Head) -> Quantity:
    """Positions of a sequence that are read out."""
    return {"all": n, "last": number(1), "none": number(0)}[head]


def _stays(tensor: Tensor, recompute: Recompute) -> bool:
    """Whether a tensor is kept from the forward pass on."""
    if recompute == "full":
        return tensor.name == "resid_pre"
    return recompute == "none" or not tensor.core


def _blocks(stack: Stack, rows: Rows) -> Iterator[Part]:
    """The parts that all blocks of a stack keep."""
    config, recompute = stack.config, rows.form.recompute
    groups = [(activation_blocks.around_ffn(config, rows), config.n_layers, stack.letter)]
    for kind in architecture.by_ffn(stack):
        inside = activation_blocks.inside_ffn(config, kind.ffn, kind.prefix, rows)
        groups.append((inside, kind.count, kind.letter))
    for tensors, count, letter in groups:
        for tensor in tensors:
            if _stays(tensor, recompute):
                name = f"{stack.prefix}blocks.{tensor.name}"
                yield Part(id=name, each=tensor.bytes, count=count, letter=letter)


def _kinds(stack: Stack, rows: Rows) -> Iterator[_Kind]:
    config = stack.config
    around = tuple(activation_blocks.around_ffn(config, rows))
    for kind in architecture.by_ffn(stack):
        inside = activation_blocks.inside_ffn(config, kind.ffn, kind.prefix, rows)
        suffix = ".dense" if kind.prefix == "ffn.dense." else ""
        yield _Kind(f"{stack.prefix}blocks{suffix}", kind.count, (*around, *inside))


def _of_block(kind: _Kind, recompute: Recompute) -> BlockKept:
    kept = (tensor for tensor in kind.tensors if _stays(tensor, recompute))
    parts = joined([[Part(id=tensor.name, each=tensor.bytes) for tensor in kept]])
    return BlockKept(id=kind.id, count=kind.count, ledger=Ledger(unit="bytes", parts=parts))


def _live(kinds: Sequence[_Kind], recompute: Recompute) -> tuple[Part, ...]:
    """What is made again for one block, the one with most of it; nothing without recomputation."""
    made = [joined([_made_again(kind, recompute)]) for kind in kinds]
    return max(made, key=lambda parts: sum(part.value for part in parts), default=())


def _made_again(kind: _Kind, recompute: Recompute) -> Iterator[Part]:
    for tensor in kind.tensors:
        if not _stays(tensor, recompute):
            name = f"live.{kind.id}.{tensor.name}"
            yield Part(id=name, each=tensor.bytes, views=frozenset({"live"}))


def _outside(stack: Stack, rows: Rows) -> Iterator[Part]:
    """Below and above a stack's blocks."""
    config, x = stack.config, architecture.letters(stack.config)
    below = x["d"] if config.d_embed is None else x["d_embed"]
    found = {
        "embed_norm.in": rows.of(below) if config.embed_norm else None,
        "embed_projection.in": rows.of(below) if config.d_embed is not None else None,
        "embed.mask": rows.mask(x["d"]) if rows.form.dropout else None,
        "final_norm.in": rows.of(x["d"]) if config.final_norm else None,
        "memory": rows.of_source(x["d"]) if config.cross_attention else None,
        **_readout(config, rows, below),
    }
    for name, size in found.items():
        if size is not None:
            yield Part(id=stack.prefix + name, each=size)


def _readout(config: ModelConfig, rows: Rows, width: Quantity) -> dict[str, Quantity]:
    """What the readout keeps: its inputs, and the logits that the loss reads."""
    if not reads_out(config):
        return {}
    x, read = architecture.letters(config), read_out(rows.n, rows.form.head or "all")
    positions = rows.batch * read
    found = {}
    if config.mlm_head:
        found["mlm_head.in"] = positions * x["d"] * rows.a
        found["mlm_head.up"] = found["mlm_norm.in"] = positions * width * rows.a
    elif config.d_embed is not None:
        found["unembed_projection.in"] = positions * x["d"] * rows.a
    found["unembed.in"] = positions * width * rows.a
    found["logits"] = positions * x["V"] * LOGIT_BYTES
    return found
