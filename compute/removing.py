"""A model without what sees the order of its rows: its positions, its masks, or both."""

from dataclasses import dataclass, replace

from compute.config import ModelConfig, PositionConfig


@dataclass(frozen=True, slots=True)
class Case:
    """What a run keeps of the model: its positions, its masks."""

    name: str
    positions: bool
    mask: bool


CASES = (
    Case("as_it_is", positions=True, mask=True),
    Case("without_positions", positions=False, mask=True),
    Case("without_mask", positions=True, mask=False),
    Case("without_both", positions=False, mask=False),
)


@dataclass(frozen=True, slots=True)
class Variant:
    """A case of a model: its config, and the earlier case whose config is the same."""

    case: Case
    config: ModelConfig
    same_as: str | None


def variants(config: ModelConfig) -> list[Variant]:
    """The four cases; a case that removes what a model does not have is an earlier one again."""
    found: list[Variant] = []
    for case in CASES:
        made = without(config, positions=not case.positions, mask=not case.mask)
        same = next((each.case.name for each in found if each.config == made), None)
        found.append(Variant(case, made, same))
    return found


def without(config: ModelConfig, *, positions: bool, mask: bool) -> ModelConfig:
    """The config without its positions, without its masks (causal, windows), or without both.

    Its weights serve it as they are: a table of positions is left unread. An encoder stays as it
    is: it reads the memory, whose rows nobody permutes.
    """
    placed = _without_positions(config) if positions and has_positions(config) else config
    return _without_masks(placed) if mask and has_masks(placed) else placed


def has_positions(config: ModelConfig) -> bool:
    """Whether position enters a stack at all."""
    return config.position.kind != "none"


def has_masks(config: ModelConfig) -> bool:
    """Whether a stack's attention is causal, or windowed in any block."""
    attention = config.attention
    windows = [attention.window, *(layer.window for layer in config.layers)]
    return attention.kind != "none" and (attention.mask != "full" or any(windows))


def _without_positions(config: ModelConfig) -> ModelConfig:
    layers = tuple(replace(layer, theta=None) for layer in config.layers)
    return replace(config, position=PositionConfig(), layers=layers)


def _without_masks(config: ModelConfig) -> ModelConfig:
    attention = replace(config.attention, mask="full", window=None)
    layers = tuple(replace(x, window=None) for x in config.layers)
    return replace(config, attention=attention, layers=layers)
