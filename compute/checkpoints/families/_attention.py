"""What the attention of several families has in common: how heads turn, which blocks slide."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from compute.checkpoints.fields import Fields
from compute.checkpoints.rope import Rope
from compute.config import (
    AttentionBias,
    LayerConfig,
    ModelConfig,
    PositionConfig,
    block_config,
    layer_config,
    position_config,
)

SLIDING, FULL = "sliding_attention", "full_attention"


def everywhere(on: bool) -> AttentionBias:
    """All four biases, or none."""
    return AttentionBias(q=on, k=on, v=on, o=on)


def refuse_two_way(fields: Fields) -> None:
    """A model of these families attends backwards; an option that it look ahead is refused."""
    fields.must_be("is_causal", True, default=True)
    fields.must_be("use_bidirectional_attention", False, default=False)


def turning(rope: Rope, d_head: int) -> PositionConfig:
    """RoPE of the first coordinates of each head, as many as are turned."""
    return position_config(
        "rope",
        d_head,
        theta=rope.theta,
        rotary_dim=int(d_head * rope.fraction),
        scaling=rope.scaling,
    )


def slides(fields: Fields, n_layers: int, rule: Callable[[int], bool]) -> list[bool]:
    """Whether each block slides: `layer_types` says it, or else the rule."""
    given = fields.names("layer_types", (SLIDING, FULL))
    if given is None:
        return [rule(layer) for layer in range(n_layers)]
    if len(given) != n_layers:
        detail = f"must have one entry for each of {n_layers} blocks; got {len(given)}."
        fields.fault("layer_types", detail, n_layers, len(given))
    return [name == SLIDING for name in given]


def windowed(config: ModelConfig, sliding: Sequence[bool], window: int | None) -> ModelConfig:
    """The config with a window in the blocks that slide."""
    own = layer_config(config)
    return with_blocks(config, sliding, replace(own, window=window), replace(own, window=None))


def with_blocks(
    config: ModelConfig, sliding: Sequence[bool], own: LayerConfig, others: LayerConfig
) -> ModelConfig:
    """The config with what blocks have of their own: those that slide, and the others."""
    layers = tuple(own if each else others for each in sliding)
    mixed = replace(config, layers=layers)
    return block_config(mixed, 0) if len(set(layers)) == 1 else mixed
