"""What a run multiplies with and fetches, as plain numbers off the list of what a model holds.

The same list that counts parameters and FLOPs; integers are kept by config, since admission
asks for them thousands of times.
"""

from dataclasses import dataclass
from functools import lru_cache

from compute.config import AttentionConfig, FfnConfig, ModelConfig, NormConfig, PositionConfig
from compute.sizing.holdings import Holding, holdings

_BLOCKS = "blocks."
_PACKED = tuple(f"blocks.attn.{name}" for name in ("W_Q", "W_K", "W_V"))


@dataclass(frozen=True, slots=True)
class Products:
    """Multiply-adds of one block: for each of its positions, each position of the memory, and each
    pair of a query and a key, h (d_k + d_v)."""

    position: int
    memory: int
    pair: int


@lru_cache(maxsize=256)
def products(d: int, attention: AttentionConfig, ffn: FfnConfig, cross: bool) -> Products:
    """What one block of a stack that runs multiplies."""
    held = [x for x in holdings(_bare(d, attention, ffn, cross)) if x.id.startswith(_BLOCKS)]
    return Products(
        position=_used(held, "rows"),
        memory=_used(held, "memory"),
        pair=attention.n_heads * (attention.d_head + attention.d_value),
    )


def _used(held: list[Holding], reads: str) -> int:
    return sum(int(x.used.value) for x in held if x.role == "matrix" and x.reads == reads)


def _bare(d: int, attention: AttentionConfig, ffn: FfnConfig, cross: bool) -> ModelConfig:
    """One block alone: norms, positions and tables multiply nothing."""
    return ModelConfig(
        d_model=d,
        n_layers=1,
        attention=attention,
        ffn=ffn,
        norm=NormConfig(),
        position=PositionConfig(),
        vocab=None,
        tied=False,
        unembed_bias=False,
        final_norm=False,
        cross_attention=cross,
    )


@lru_cache(maxsize=256)
def readout_products(config: ModelConfig) -> tuple[int, int]:
    """Multiply-adds for a position that is read out: of the masked-token head, of the readout."""
    sizes = {x.id: int(x.size.value) for x in holdings(config)}
    table = "embed.W_E" if config.tied else "unembed.W_U"
    return sizes.get("mlm_head.W", 0), sizes.get(table, 0)


@lru_cache(maxsize=256)
def sizes(config: ModelConfig) -> tuple[tuple[str, int], ...]:
    """(id, numbers) of every kind of tensor that a run reads, of blocks one block's.

    A pooler, classes and extras stand beside the run.
    """
    read = (x for x in holdings(config) if x.reads not in ("first", "none"))
    return tuple((x.id, int(x.size.value)) for x in read)


def packing_size(config: ModelConfig) -> int:
    """Numbers of W_Q, W_K and W_V of a block: they lie there twice while they are packed."""
    return sum(size for name, size in sizes(config) if name in _PACKED)
