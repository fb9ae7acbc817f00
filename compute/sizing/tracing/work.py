"""What a run multiplies with and fetches, as plain numbers off the list of what a model holds.

The same list that counts parameters and FLOPs; integers are kept by config, since admission
asks for them thousands of times.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from compute.config import AttentionConfig, FfnConfig, ModelConfig, NormConfig, PositionConfig
from compute.sizing.holdings import Holding, holdings
from compute.sizing.tracing import order

_BLOCKS = "blocks."
_PACKED = tuple(f"blocks.attn.{name}" for name in ("W_Q", "W_K", "W_V"))


_WAITS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("attn.W_Q", "attn.W_K", "attn.W_V"), "attn.q"),  # as one product
        "attn.W_O": "attn.out_raw",
        "cross.W_Q": "cross.q",
        **dict.fromkeys(("cross.W_K", "cross.W_V"), "cross.k"),
        "cross.W_O": "cross.out_raw",
        "ffn.W_router": "ffn.router",
        "ffn.W_in": "ffn.up",
        "ffn.W_gate": "ffn.gate",
        "ffn.W_out": "ffn.out_raw",
        "ffn.W_shared_weight": "ffn.shared_weight",
        **dict.fromkeys(
            ("ffn.W_shared_in", "ffn.W_shared_gate", "ffn.W_shared_out"), "ffn.shared_out"
        ),
    }
)
"""A weight's name in a block -> the first stage that waits for its product."""

_OF_EXPERTS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("ffn.W_in", "ffn.W_gate"), "ffn.expert_hidden"),
        "ffn.W_out": "ffn.expert_out",
    }
)
"""The same where a mixture multiplies with chosen experts."""

_END = "resid_post"


@dataclass(frozen=True, slots=True)
class Products:
    """Multiply-adds of one block, all or up to a stage: for each of its positions, each position
    of the memory, each pair of a query and a key, and each pair of a query and a row of the
    memory. All of a block's pairs take h (d_k + d_v)."""

    position: int
    memory: int
    pair: int
    far: int


def products(d: int, attention: AttentionConfig, ffn: FfnConfig, cross: bool) -> Products:
    """What one block of a stack that runs multiplies."""
    return products_until(order.place_of(_END), d, attention, ffn, cross)


@lru_cache(maxsize=2048)
def products_until(
    place: int, d: int, attention: AttentionConfig, ffn: FfnConfig, cross: bool
) -> Products:
    """What one block has multiplied when the stage of a place in the catalogue is there."""
    waits = {**_WAITS, **(_OF_EXPERTS if ffn.kind == "moe" else {})}
    held = [
        x
        for x in holdings(_bare(d, attention, ffn, cross))
        if x.id.startswith(_BLOCKS) and x.role == "matrix"
        if order.place_of(waits[x.id.removeprefix(_BLOCKS)]) <= place
    ]
    return Products(
        position=_used(held, "rows"),
        memory=_used(held, "memory"),
        pair=_of_a_pair("attn", place, attention),
        far=_of_a_pair("cross", place, attention) if cross else 0,
    )


def _of_a_pair(sublayer: str, place: int, attention: AttentionConfig) -> int:
    widths = {"scores": attention.d_head, "z": attention.d_value}
    return attention.n_heads * sum(
        width for name, width in widths.items() if order.place_of(f"{sublayer}.{name}") <= place
    )


def _used(held: Sequence[Holding], reads: str) -> int:
    return sum(int(x.used.value) for x in held if x.reads == reads)


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
