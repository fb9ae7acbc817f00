"""The catalogue of stages: the one list that selection, sizing, validation and docs read.

A stage is a tensor with a name. Block stages are listed without their prefix (`attn.pattern`);
`full_name` adds it (`blocks.0.attn.pattern`).
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from compute import tensors
from compute._stage import LIBRARIES, Alias, Library, Stage
from compute._stage_table import STAGES
from compute.config import ModelConfig

__all__ = [
    "BY_NAME",
    "LIBRARIES",
    "STAGES",
    "Alias",
    "Library",
    "Stage",
    "axes_of",
    "dimensions",
    "find",
    "full_name",
    "in_order",
    "layer_of",
    "local_name",
    "names_for",
]

BY_NAME: Mapping[str, Stage] = MappingProxyType({stage.name: stage for stage in STAGES})
"""Stage name without block prefix -> stage."""

_BLOCK = tuple(stage for stage in STAGES if stage.level == "block")
_FIRST = STAGES.index(_BLOCK[0])


def full_name(stage: Stage, layer: int) -> str:
    """`blocks.{layer}.{name}` for a block stage, the name itself at model level."""
    return f"blocks.{layer}.{stage.name}" if stage.level == "block" else stage.name


def local_name(name: str) -> str:
    """`blocks.3.attn.z` -> `attn.z`; names of model level stay as they are."""
    return name.split(".", 2)[-1] if name.startswith("blocks.") else name


def layer_of(name: str) -> int | None:
    """`blocks.3.attn.z` -> 3; None at model level."""
    return int(name.split(".", 2)[1]) if name.startswith("blocks.") else None


def find(name: str) -> Stage:
    """The stage of a full name: `blocks.3.attn.z` -> the stage `attn.z`."""
    return BY_NAME[local_name(name)]


def in_order(n_layers: int) -> Iterator[tuple[str, Stage]]:
    """(full name, stage) of the whole catalogue for a stack, existing in a config or not."""
    yield from ((stage.name, stage) for stage in STAGES[:_FIRST])
    for layer in range(n_layers):
        yield from ((full_name(stage, layer), stage) for stage in _BLOCK)
    yield from ((stage.name, stage) for stage in STAGES[_FIRST + len(_BLOCK) :])


def names_for(stage: Stage, config: ModelConfig) -> tuple[str, ...]:
    """Every spelling that means a stage under a config: name, symbol, aliases."""
    symbol = [stage.symbol] if stage.symbol and stage.symbol_holds(config) else []
    aliases = [alias.name for alias in stage.aliases if alias.holds(config)]
    return tuple(dict.fromkeys([stage.name, *symbol, *aliases]))


def dimensions(config: ModelConfig, positions: int, batch: int | None) -> dict[str, int]:
    """Axis letter -> length for a run; `b` only where the request has a batch axis."""
    lengths = {**tensors.widths(config), "n": positions, "m": positions, "1": 1}
    return lengths if batch is None else {"b": batch, **lengths}


def axes_of(stage: Stage, batched: bool) -> tuple[str, ...]:
    """The stage's axis letters, led by `b` where the request has a batch axis."""
    return ("b", *stage.axes) if batched else stage.axes
