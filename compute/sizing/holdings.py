"""Everything a model holds, a line for each kind of tensor, and what each is multiplied with.

What compute runs comes from `compute.tensors`, the one list of weights; what is only sized
(latent attention, patches, a pooler, ...) is added here. Counts of parameters, of FLOPs and of
bytes are all read off this list.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Literal

from compute import tensors
from compute.config import ModelConfig, reads_out
from compute.sizing import architecture
from compute.sizing.architecture import Blocks, Stack
from compute.sizing.quantity import Quantity, number
from compute.tensors import Tensor

Role = Literal["matrix", "table", "gain", "bias", "other"]
Reads = Literal["rows", "source", "memory", "readout", "first", "patches", "lookup", "none"]
"""What a tensor meets. rows: each position of its own stack. source: each position of an encoder.
memory: each position of the memory that cross-attention reads. readout: each position that is read
out. first: one position of a sequence. patches: each patch. lookup: a row for each token."""

_MULTIPLIED = {"mlm_head": "readout", "unembed": "readout", "unembed_projection": "readout"}
_FIRST = {"pooler": "first", "classifier": "first", "patch_embed": "patches"}
_CROSS_SOURCE = ("cross.W_K", "cross.W_V", "cross.b_K", "cross.b_V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A kind of tensor: `size` numbers in each of `count` (letter), `runs` of which are gone
    through by a run; `used`: the numbers that one position meets (chosen experts alone)."""

    id: str
    size: Quantity
    used: Quantity
    count: int
    letter: str
    runs: int
    runs_letter: str
    role: Role
    reads: Reads

    @property
    def parameters(self) -> int:
        """Numbers of all of them."""
        return int(self.size.value) * self.count


@lru_cache(maxsize=256)
def holdings(config: ModelConfig) -> tuple[Holding, ...]:
    """Everything a model holds, in order of use."""
    return tuple(found for stack in architecture.stacks(config) for found in _of_stack(stack))


def _of_stack(stack: Stack) -> Iterator[Holding]:
    config = stack.config
    kinds = architecture.by_ffn(stack)
    first = architecture.one_block(config, kinds[0].ffn)
    listed = [t for t in tensors.tensors(first).values() if config.norm.gain or t.part != "norms"]
    below = [t for t in listed if _moment(t) == "below"]
    above = [t for t in listed if _moment(t) == "above"]
    inside = [t for t in listed if _moment(t) == "block"]
    yield from _patches(stack)
    yield from (_single(stack, t) for t in below)
    yield from _embed_projection(stack)
    yield from _blocks(stack, kinds, inside)
    yield from (_single(stack, t) for t in above if t.name == "final_norm.weight")
    yield from (_single(stack, t) for t in above if t.name == "final_norm.bias")
    yield from _readout_projection(stack)
    yield from (_single(stack, t) for t in above if not t.name.startswith("final_norm"))
    yield from _beside(stack)


def _moment(tensor: Tensor) -> Literal["below", "block", "above"]:
    if tensor.name.startswith("blocks."):
        return "block"
    first = tensor.name.partition(".")[0]
    return "above" if first in ("final_norm", "mlm_head", "mlm_norm", "unembed") else "below"


def _local(tensor: Tensor) -> str:
    return tensor.name.removeprefix("blocks.0.")


def _single(stack: Stack, tensor: Tensor) -> Holding:
    """A tensor below or above the blocks."""
    letters = architecture.letters(stack.config)
    axes = ["n_positions" if x == "n" else "d" if x == "p" else x for x in tensor.axes]
    if stack.config.d_embed is not None:
        axes = _narrowed(tensor.name, axes)
    size = _product([letters[x] for x in axes if x != "1"])
    return _one(stack, tensor.name, size, tensor.role, _reads_of(stack, tensor))


def _narrowed(name: str, axes: list[str]) -> list[str]:
    """The axes of a tensor where the embedding has a width of its own."""
    first = name.partition(".")[0]
    if name == "mlm_head.W":
        return ["d", "d_embed"]
    if first in ("final_norm", "rel_bias"):
        return axes
    return ["d_embed" if x == "d" else x for x in axes]


def _reads_of(stack: Stack, tensor: Tensor) -> Reads:
    first = tensor.name.partition(".")[0]
    if tensor.role == "table" and first != "rel_bias":
        return "lookup"
    if first in _MULTIPLIED or first == "mlm_norm":
        return "readout"
    return "source" if stack.is_encoder else "rows"


def _one(stack: Stack, name: str, size: Quantity, role: Role, reads: Reads) -> Holding:
    return Holding(
        id=stack.prefix + name,
        size=size,
        used=size,
        count=1,
        letter="1",
        runs=1,
        runs_letter="1",
        role=role,
        reads=reads,
    )


def _product(axes: Sequence[Quantity]) -> Quantity:
    return prod(axes, start=number(1))


def _patches(stack: Stack) -> Iterator[Holding]:
    config, letters = stack.config, architecture.letters(stack.config)
    if config.patches is None:
        return
    size = letters["channels"] * letters["patch"] ** 2 * letters["d"]
    yield _one(stack, "patch_embed.W", size, "matrix", "patches")
    if config.patches.bias:
        yield _one(stack, "patch_embed.b", letters["d"], "bias", "patches")
    if config.patches.class_token:
        yield _one(stack, "class_token", letters["d"], "table", "none")


def _embed_projection(stack: Stack) -> Iterator[Holding]:
    config, letters = stack.config, architecture.letters(stack.config)
    if config.d_embed is None:
        return
    size = letters["d_embed"] * letters["d"]
    yield _one(stack, "embed_projection.W", size, "matrix", "rows")
    if config.embed_projection_bias:
        yield _one(stack, "embed_projection.b", letters["d"], "bias", "rows")


def _readout_projection(stack: Stack) -> Iterator[Holding]:
    """Where rows of d_model are read out by an embedding of another width."""
    config, letters = stack.config, architecture.letters(stack.config)
    if config.d_embed is not None and reads_out(config) and not config.mlm_head:
        size = letters["d"] * letters["d_embed"]
        yield _one(stack, "unembed_projection.W", size, "matrix", "readout")


def _beside(stack: Stack) -> Iterator[Holding]:
    config, letters = stack.config, architecture.letters(stack.config)
    if config.pooler:
        yield _one(stack, "pooler.W", letters["d"] ** 2, "matrix", "first")
        yield _one(stack, "pooler.b", letters["d"], "bias", "first")
    if config.classes:
        yield _one(stack, "classifier.W", letters["d"] * letters["C"], "matrix", "first")
        yield _one(stack, "classifier.b", letters["C"], "bias", "first")
    for extra in config.extras:
        yield _one(stack, f"extras.{extra.name}", number(extra.parameters), "other", "none")


def _blocks(stack: Stack, kinds: Sequence[Blocks], inside: Sequence[Tensor]) -> Iterator[Holding]:
    """What blocks hold: attention of all of them, then the ffn of each kind, then its norms."""
    config = stack.config
    letters = architecture.letters(config)
    everywhere = Blocks(
        config.ffn, "", config.n_layers, stack.letter, architecture.distinct_blocks(config)
    )
    latent = list(_latent(config)) if config.attention.mla is not None else []
    for tensor in inside:
        own = _local(tensor)
        if own.startswith("ffn."):
            continue
        if latent and own.startswith("attn.") and own != "attn.b_O":
            if own == "attn.W_Q":
                for name, axes, role in latent:
                    size = _product([letters[x] for x in axes.split()])
                    yield _repeated(stack, everywhere, name, size, size, role)
            continue
        size = _product([letters[x] for x in tensor.axes])
        yield _repeated(stack, everywhere, own, size, size, tensor.role)
    for kind in kinds:
        yield from _ffn(stack, kind)


def _ffn(stack: Stack, kind: Blocks) -> Iterator[Holding]:
    """The tensors of one kind of ffn."""
    listed = tensors.tensors(architecture.one_block(stack.config, kind.ffn)).values()
    own = replace(stack.config, ffn=kind.ffn)
    letters = dict(architecture.letters(own))
    if kind.prefix == "ffn.dense.":
        letters["f"] = letters["f"].named("f_dense")
    for tensor in listed:
        local = _local(tensor)
        if not local.startswith("ffn."):
            continue
        name = kind.prefix + local.removeprefix("ffn.")
        axes = [x for x in tensor.axes if x != "1"]
        chosen = ["c" if x == "e" and tensor.axes[0] == "e" and len(axes) > 1 else x for x in axes]
        size, used = (_product([letters[x] for x in each]) for each in (axes, chosen))
        yield _repeated(stack, kind, name, size, used, tensor.role)


def _repeated(
    stack: Stack, kind: Blocks, name: str, size: Quantity, used: Quantity, role: Role
) -> Holding:
    source = name.startswith(_CROSS_SOURCE)
    shared = kind.distinct != kind.count
    return Holding(
        id=f"{stack.prefix}blocks.{name}",
        size=size,
        used=used,
        count=kind.distinct,
        letter=f"{kind.letter}_distinct" if shared else kind.letter,
        runs=kind.count,
        runs_letter=kind.letter,
        role=role,
        reads="memory" if source else "source" if stack.is_encoder else "rows",
    )


def _latent(config: ModelConfig) -> Iterator[tuple[str, str, Role]]:
    """(name, axes, role) of latent attention. DeepSeek-V2, arXiv:2405.04434, equations 9 to 19."""
    mla, gain = config.attention.mla, config.norm.kind != "none" and config.norm.gain
    assert mla is not None  # noqa: S101 - the caller asked
    if mla.q_lora_rank is None:
        yield "attn.W_Q", "h d k", "matrix"
    else:
        yield "attn.W_DQ", "d r_q", "matrix"
        if gain:
            yield "attn.q_lora_norm.weight", "r_q", "gain"
        yield "attn.W_UQ", "r_q h k", "matrix"
    yield "attn.W_DKV", "d r_kv", "matrix"
    yield "attn.W_KR", "d k_rope", "matrix"
    if gain:
        yield "attn.kv_lora_norm.weight", "r_kv", "gain"
    yield "attn.W_UK", "r_kv h k_nope", "matrix"
    yield "attn.W_UV", "r_kv h v", "matrix"
    yield "attn.W_O", "h v d", "matrix"
