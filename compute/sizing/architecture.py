"""What a model is made of, kind by kind: how many blocks of which ffn, and of which window.

Nothing here goes through the blocks one by one but where a config lists them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from compute import tensors
from compute.config import FfnConfig, ModelConfig
from compute.sizing.quantity import Quantity, q
from compute.tensors import ENCODER


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack of blocks: its prefix, its config, and the letter that counts its blocks."""

    prefix: str
    config: ModelConfig
    letter: str

    @property
    def is_encoder(self) -> bool:
        """Whether the stack reads the memory, for another that attends to it."""
        return bool(self.prefix)


@dataclass(frozen=True, slots=True)
class Blocks:
    """So many blocks that hold the same: their ffn, what is in front of its names, and how many
    of them have weights of their own."""

    ffn: FfnConfig
    prefix: str
    count: int
    letter: str
    distinct: int


def stacks(config: ModelConfig) -> Iterator[Stack]:
    """The encoder's stack, where there is one, and the model's own."""
    if config.encoder is not None:
        yield Stack(ENCODER, config.encoder, "L_enc")
    yield Stack("", config, "L")


def by_ffn(stack: Stack) -> tuple[Blocks, ...]:
    """The blocks of a stack by their ffn: those with experts, and the dense ones among them."""
    config, letter = stack.config, stack.letter
    ffn, count = config.ffn, config.n_layers
    dense = n_dense(config)
    if not dense:
        return (Blocks(ffn, "ffn.", count, letter, distinct_blocks(config)),)
    own = Blocks(ffn, "ffn.", count - dense, f"{letter}_moe", count - dense)
    other = Blocks(dense_ffn(ffn), "ffn.dense.", dense, f"{letter}_dense", dense)
    return (other, own) if own.count else (other,)


def caches(config: ModelConfig) -> bool:
    """Whether a stack keeps keys and values: what later positions bring changes none of them."""
    return config.attention.kind != "none" and config.attention.mask == "causal"


def n_dense(config: ModelConfig) -> int:
    """How many blocks of a mixture have a dense ffn.

    Block l has experts where l >= first_dense and (l + 1) is a multiple of `every`.
    """
    ffn = config.ffn
    if ffn.kind != "moe":
        return 0
    first, every = min(ffn.first_dense, config.n_layers), ffn.every
    return config.n_layers - (config.n_layers // every - first // every)


def dense_ffn(ffn: FfnConfig) -> FfnConfig:
    """The ffn of a mixture's dense blocks."""
    return FfnConfig(kind=ffn.expert, d_ff=ffn.d_dense, activation=ffn.activation, bias=ffn.bias)


def distinct_blocks(config: ModelConfig) -> int:
    """Blocks that have weights of their own."""
    return config.n_layers if config.distinct_blocks is None else config.distinct_blocks


def windows(config: ModelConfig) -> tuple[tuple[int | None, int], ...]:
    """(window, how many blocks have it), blocks without one first, then the narrow ones."""
    found = Counter(layer.window for layer in config.layers)
    if not config.layers:
        found = Counter({config.attention.window: config.n_layers})
    return tuple(sorted(found.items(), key=lambda item: (item[0] is not None, item[0] or 0)))


@lru_cache(maxsize=64)
def letters(config: ModelConfig) -> Mapping[str, Quantity]:
    """Letter -> number of a stack's widths, as formulas write them."""
    mla, rows = config.attention.mla, config.vocab or 0
    widths = tensors.widths(config)
    del widths["p"]  # d_model, or d_embed, of the masked-token head
    found = widths | {
        "r": config.position.n_buckets if config.position.kind == "t5_bias" else 0,
        "V": rows if config.vocab_padded_to is None else config.vocab_padded_to,
        "n_positions": config.position.n_positions,
        "d_embed": config.d_model if config.d_embed is None else config.d_embed,
        "C": config.classes,
    }
    if mla is not None:
        found |= {"r_kv": mla.kv_lora_rank, "k_nope": mla.d_nope, "k_rope": mla.d_rope}
        found["r_q"] = mla.q_lora_rank or 0
    if config.patches is not None:
        patches = config.patches
        found |= {"channels": patches.channels, "patch": patches.patch_size}
    return MappingProxyType({letter: q(letter, value) for letter, value in found.items()})


def patch_rows(config: ModelConfig) -> int:
    """Positions of an image: its patches, and the class token; 0 without patches."""
    patches = config.patches
    if patches is None:
        return 0
    return (patches.image_size // patches.patch_size) ** 2 + int(patches.class_token)


def one_block(config: ModelConfig, ffn: FfnConfig) -> ModelConfig:
    """A block with an ffn as compute would run it: what is only sized left out."""
    attention = replace(config.attention, mla=None, window=None)
    return replace(
        config,
        n_layers=1,
        attention=attention,
        ffn=replace(ffn, first_dense=0, every=1, d_dense=0),
        layers=(),
        encoder=None,
        distinct_blocks=None,
        extras=(),
    )
