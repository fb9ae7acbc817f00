"""Mistakes in a config: the config with some fields of a part changed."""

from collections.abc import Callable
from dataclasses import replace

from compute.config import LayerConfig, ModelConfig

Change = Callable[[ModelConfig], ModelConfig]


def whole(**changed: object) -> Change:
    """Fields of the model."""
    return lambda c: replace(c, **changed)  # type: ignore[arg-type]


def attention(**changed: object) -> Change:
    """Fields of its attention."""
    return lambda c: replace(c, attention=replace(c.attention, **changed))  # type: ignore[arg-type]


def ffn(**changed: object) -> Change:
    """Fields of its ffn."""
    return lambda c: replace(c, ffn=replace(c.ffn, **changed))  # type: ignore[arg-type]


def norm(**changed: object) -> Change:
    """Fields of its norms."""
    return lambda c: replace(c, norm=replace(c.norm, **changed))  # type: ignore[arg-type]


def position(**changed: object) -> Change:
    """Fields of its positions."""
    return lambda c: replace(c, position=replace(c.position, **changed))  # type: ignore[arg-type]


def layers(change: Callable[[LayerConfig], LayerConfig]) -> Change:
    """What each block has of its own."""
    return lambda c: replace(c, layers=tuple(map(change, c.layers)))


def encoder(change: Change) -> Change:
    """Its encoder."""

    def changed(config: ModelConfig) -> ModelConfig:
        assert config.encoder is not None
        return replace(config, encoder=change(config.encoder))

    return changed
