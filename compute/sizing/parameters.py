"""Parameters: how many numbers a model holds, part by part, and what others count as such.

`total` is every number of the model's tensors once, shared ones once. `VIEWS` says what else is
called its parameters; the article's ledger, 12 d² a block, stands beside the exact sum with the
gap taken apart.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from compute.config import ModelConfig, reads_out
from compute.sizing import architecture
from compute.sizing.holdings import Holding, holdings
from compute.sizing.ledger import Ledger, Part
from compute.sizing.quantity import Quantity, number, q
from compute.tensors import ENCODER

VIEWS: Mapping[str, str] = MappingProxyType(
    {
        "non_embedding": "All but the tables of tokens and positions and the readout's matrix.",
        "blocks": "What the blocks hold.",
        "matmul": "What a position is multiplied with, all experts, a shared table as readout.",
    }
)
"""View -> what it is the sum of."""

_EMBEDDING = ("embed.W_E", "pos_embed.W_pos", "unembed.W_U")


def count(config: ModelConfig) -> int:
    """Numbers that a model holds."""
    return sum(held.parameters for held in holdings(config))


def ledger(config: ModelConfig) -> Ledger:
    """Every part of a model."""
    parts = [_part(config, held) for held in holdings(config) if held.parameters]
    return Ledger(unit="parameters", parts=parts, views=tuple(VIEWS))


def _part(config: ModelConfig, held: Holding) -> Part:
    return Part(
        id=held.id,
        each=held.size,
        count=held.count,
        letter=held.letter,
        views=frozenset(_views(config, held)),
    )


def _views(config: ModelConfig, held: Holding) -> list[str]:
    as_readout = held.id == "embed.W_E" and config.tied and reads_out(config)
    within = {
        "non_embedding": held.id.removeprefix("encoder.") not in _EMBEDDING,
        "blocks": "blocks." in held.id,
        "matmul": held.role == "matrix" or as_readout,
    }
    return [name for name, is_in in within.items() if is_in]


def counts(config: ModelConfig) -> dict[str, tuple[int, str]]:
    """Every count that goes by the name of parameters: name -> (number, what it counts)."""
    found = ledger(config)
    total = int(found.total)
    return {
        "all": (total, "Every number of the model once."),
        **{name: (int(found.view(name)), meaning) for name, meaning in VIEWS.items()},
        "active": (active(config), "What one token meets: of experts the chosen ones."),
        "untied": (total + _second_copy(config), "A shared table counted again as readout."),
    }


def _second_copy(config: ModelConfig) -> int:
    """Numbers of a table that is the readout too."""
    if not (config.tied and reads_out(config)):
        return 0
    return next(held.parameters for held in holdings(config) if held.id == "embed.W_E")


def active(config: ModelConfig) -> int:
    """Numbers that one token meets: of experts the chosen ones alone, tables whole."""
    return sum(int(held.used.value) * held.count for held in holdings(config))


@dataclass(frozen=True, slots=True)
class BlockCount:
    """What one block of a kind holds, and how many blocks of the kind there are."""

    id: str
    parameters: int
    count: int


def per_block(config: ModelConfig) -> tuple[BlockCount, ...]:
    """One block of each kind: `encoder.blocks`, `blocks`; of a mixture with dense blocks both."""
    return tuple(
        BlockCount(f"{stack.prefix}blocks{suffix}", _held(config, stack.prefix, kind), kind.count)
        for stack in architecture.stacks(config)
        for kind in architecture.by_ffn(stack)
        for suffix in (".dense" if kind.prefix == "ffn.dense." else "",)
    )


def _held(config: ModelConfig, prefix: str, kind: architecture.Blocks) -> int:
    own = f"{prefix}blocks."
    dense = f"{own}ffn.dense."
    is_dense = kind.prefix == "ffn.dense."
    return sum(
        int(held.size.value)
        for held in holdings(config)
        if held.id.startswith(own)
        and (not held.id.startswith(f"{own}ffn.") or held.id.startswith(dense) == is_dense)
    )


@dataclass(frozen=True, slots=True)
class ArticleLedger:
    """The article's count, 3d² + d² + 8d² = 12d² a block, and each part of what it leaves out.

    `letter`: what counts the blocks of all stacks.
    """

    total: Quantity
    blocks: int
    letter: str
    parts: tuple[Part, ...]
    gap: tuple[Part, ...]

    @property
    def gap_total(self) -> int:
        """The exact count less 12 L d²."""
        return sum(int(part.value) for part in self.gap)


_BASE = {"attn.W_QKV": 3, "attn.W_O": 1, "ffn": 8}


def article_ledger(config: ModelConfig) -> ArticleLedger:
    """The ledger over all blocks, encoder's too, and the gap to the exact count, taken apart.

    Source: the article's parameter ledger, h·d_k = h·d_v = d, d_ff = 4d, no biases, no norms.
    """
    d, stacks = q("d", config.d_model), list(architecture.stacks(config))
    blocks = sum(stack.config.n_layers for stack in stacks)
    letter = "L" if len(stacks) == 1 else f"({' + '.join(stack.letter for stack in stacks)})"
    base = tuple(
        Part(
            id=f"{stack.prefix}blocks.{name}",
            each=factor * d**2,
            count=stack.config.n_layers,
            letter=stack.letter,
        )
        for stack in stacks
        for name, factor in _BASE.items()
    )
    taken = {part.id: part.quantity for part in base}
    exact = {name: number(0) for name in taken} | _by_group(config)
    differences = {name: made - taken.get(name, 0) for name, made in exact.items()}
    gap = tuple(Part(id=name, each=made) for name, made in differences.items() if made.value)
    return ArticleLedger(12 * q(letter, blocks) * d**2, blocks, letter, base, gap)


def _by_group(config: ModelConfig) -> dict[str, Quantity]:
    """The exact count by the ledger's three parts and what it leaves out."""
    groups: dict[str, Quantity] = {}
    for held in holdings(config):
        if held.parameters:
            group, count = _group(held), q(held.letter, held.count)
            made = held.size if held.count == 1 else count * held.size
            groups[group] = groups.get(group, number(0)) + made
    return groups


def _group(held: Holding) -> str:
    """The group that a tensor is told in, each stack by itself: their letters may differ."""
    prefix = ENCODER if held.id.startswith(ENCODER) else ""
    return prefix + _local_group(held, held.id.removeprefix(prefix))


def _local_group(held: Holding, name: str) -> str:
    if not name.startswith("blocks."):
        return name.partition(".")[0]
    local = name.removeprefix("blocks.")
    if held.role in ("bias", "gain"):
        return "blocks.norms" if "norm" in local else "blocks.biases"
    if local.startswith("attn."):
        return "blocks.attn.W_O" if local == "attn.W_O" else "blocks.attn.W_QKV"
    return "blocks." + local.partition(".")[0]
