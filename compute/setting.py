"""What a run fixes for all its blocks: the equations chosen from tables, and its masks."""

from dataclasses import dataclass

from compute import masks, positions
from compute.config import ModelConfig
from compute.ffn import FeedForward, feed_forward_for
from compute.norms import NORMS, Norm
from compute.positions import Turn
from compute.types import Array, Bools, DType, Inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Chosen once, before the run; the equations read it and never branch on the config.

    forbidden: (n, m) or (b, 1, n, m), true = may not attend; bias: (h, n, m) or (b, h, n, m).
    """

    norm: Norm
    feed_forward: FeedForward
    scale: float
    turn: Turn
    bias: Array | None
    forbidden: Bools | None


def setting_for(config: ModelConfig, inputs: Inputs, dtype: DType) -> Setting:
    """The setting of a run: masks joined by AND, positions from ids, norms by name."""
    position_ids = positions.ids_for(inputs)
    return Setting(
        norm=NORMS[config.norm.kind],
        feed_forward=feed_forward_for(config.ffn),
        scale=config.attention.scale,
        turn=positions.turn_for(config.position, position_ids, dtype),
        bias=positions.score_bias(config, position_ids, dtype),
        forbidden=masks.for_inputs(config.attention, inputs),
    )
