"""The catalogue of stages: the one list that selection, sizing, validation and docs read.

A stage is a tensor with a name. Block stages are listed without their prefix (`attn.pattern`);
`full_name` adds it (`blocks.0.attn.pattern`). An encoder's stages have the same names once more,
with `encoder.` before them.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from compute import tensors
from compute._stage import LIBRARIES, Alias, Library, Stage
from compute._stage_table import STAGES
from compute.config import ModelConfig, block_config
from compute.tensors import ENCODER
from compute.types import AXES

__all__ = [
    "BY_NAME",
    "ENCODER",
    "GLOSSARY",
    "LIBRARIES",
    "STAGES",
    "Alias",
    "Library",
    "Stage",
    "axes_of",
    "config_of",
    "dimensions",
    "find",
    "full_name",
    "in_order",
    "is_above",
    "layer_of",
    "lengths_of",
    "local_name",
    "names_for",
    "stack_of",
]

BY_NAME: Mapping[str, Stage] = MappingProxyType({stage.name: stage for stage in STAGES})
"""Stage name without block prefix -> stage."""

_AXES = {"b", *(letter for stage in STAGES for letter in stage.axes)}
GLOSSARY: Mapping[str, str] = MappingProxyType({x: AXES[x] for x in AXES if x in _AXES})
"""Axis letter -> axis word, of the axes that stages have; weights have some more of `AXES`."""

_BLOCK = tuple(stage for stage in STAGES if stage.level == "block")
_FIRST, _LAST = STAGES.index(_BLOCK[0]), STAGES.index(_BLOCK[-1])
_ABOVE = frozenset(stage.name for stage in STAGES[_LAST + 1 :])


def full_name(stage: Stage, layer: int, stack: str = "") -> str:
    """`blocks.{layer}.{name}` for a block stage, else the name itself; the stack before it."""
    return stack + (f"blocks.{layer}.{stage.name}" if stage.level == "block" else stage.name)


def stack_of(name: str) -> str:
    """`encoder.blocks.3.attn.z` -> `encoder.`; of the main stack the empty text."""
    return ENCODER if name.startswith(ENCODER) else ""


def local_name(name: str) -> str:
    """`blocks.3.attn.z` -> `attn.z`, with or without its stack; names of model level stay."""
    own = name.removeprefix(ENCODER)
    return own.split(".", 2)[-1] if own.startswith("blocks.") else own


def layer_of(name: str) -> int | None:
    """`blocks.3.attn.z` -> 3, of either stack; None at model level."""
    own = name.removeprefix(ENCODER)
    return int(own.split(".", 2)[1]) if own.startswith("blocks.") else None


def find(name: str) -> Stage:
    """The stage of a full name: `blocks.3.attn.z` -> the stage `attn.z`."""
    return BY_NAME[local_name(name)]


def is_above(name: str) -> bool:
    """Whether a stage stands above the blocks of its stack: the final norm, the readout."""
    return local_name(name) in _ABOVE


def config_of(name: str, config: ModelConfig) -> ModelConfig:
    """The config that a full name's stage belongs to: of its stack, and of its block."""
    stack = config
    if stack_of(name) and config.encoder is not None:
        stack = config.encoder
    layer = layer_of(name)
    return stack if layer is None else block_config(stack, layer)


def in_order(config: ModelConfig) -> Iterator[tuple[str, Stage]]:
    """(full name, stage) of the whole catalogue for a model, existing in its config or not."""
    if config.encoder is not None:
        yield from _in_stack(ENCODER, config.encoder.n_layers)
    yield from _in_stack("", config.n_layers)


def _in_stack(stack: str, n_layers: int) -> Iterator[tuple[str, Stage]]:
    yield from ((stack + stage.name, stage) for stage in STAGES[:_FIRST])
    for layer in range(n_layers):
        yield from ((full_name(stage, layer, stack), stage) for stage in _BLOCK)
    yield from ((stack + stage.name, stage) for stage in STAGES[_LAST + 1 :])


def names_for(stage: Stage, config: ModelConfig) -> tuple[str, ...]:
    """Every spelling that means a stage under a config: name, symbol, aliases."""
    symbol = [stage.symbol] if stage.symbol and stage.symbol_holds(config) else []
    aliases = [alias.name for alias in stage.aliases if alias.holds(config)]
    return tuple(dict.fromkeys([stage.name, *symbol, *aliases]))


def dimensions(
    config: ModelConfig, positions: int, batch: int | None, sources: int = 0, past: int = 0
) -> dict[str, int]:
    """Axis letter -> length for a run; `b` only where the request has a batch axis, `s` the
    positions of the memory; the keys are those of the past and of the rows."""
    rows = {"n": positions, "m": past + positions, "s": sources}
    lengths = {**tensors.widths(config), **rows, "1": 1}
    return lengths if batch is None else {"b": batch, **lengths}


def lengths_of(name: str, config: ModelConfig, lengths: Mapping[str, int]) -> Mapping[str, int]:
    """The lengths that a full name's axes have: an encoder's positions are the memory's."""
    if not stack_of(name) or config.encoder is None:
        return lengths
    return dimensions(config.encoder, lengths["s"], lengths.get("b"))


def axes_of(stage: Stage, batched: bool) -> tuple[str, ...]:
    """The stage's axis letters, led by `b` where the request has a batch axis."""
    return ("b", *stage.axes) if batched else stage.axes
