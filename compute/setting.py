"""What a run fixes for its blocks: the equations chosen from tables, and its masks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

import numpy as np

from compute import masks, positions
from compute.config import ModelConfig, block_config
from compute.ffn import FeedForward, feed_forward_for
from compute.norms import NORMS, Norm, QkNorm, qk_norm_for
from compute.pattern import Pattern, plain_pattern, sink_pattern
from compute.positions import Turn
from compute.reach import EVERYTHING, Reach, reach_of
from compute.types import Array, Bools, DType, Inputs, Ints, Past
from compute.update import Update, update_for
from compute.weights import StackWeights

Recall = Callable[[Array, Array], tuple[Array, Array]]

NO_MEMORY: Array = np.empty(0)
"""What a block reads that has no cross-attention."""

MOST_HELD = 1 << 16
"""Numbers of a config's settings, masks and angles of its blocks, that are held from run to run:
of the 64 that are, half a MiB each at most."""

ALTERNATING = 2
"""How many settings are held at once: a window or a rotation for every second or sixth block."""


def alone(K: Array, V: Array) -> tuple[Array, Array]:
    """K and V themselves: nothing stands before the rows."""
    return K, V


def after(past_K: Array, past_V: Array, K: Array, V: Array) -> tuple[Array, Array]:
    """Past, then the rows: (..., g, c, k), (..., g, n, k) -> (..., g, m, k); the same with v."""
    return np.concatenate([past_K, K], axis=-2), np.concatenate([past_V, V], axis=-2)


def recall_for(past: Past | None, layer: int, dtype: DType) -> Recall:
    """What a block's new keys and values are joined to, in the model's dtype."""
    if past is None or not past.keys:
        return alone
    keys, values = past.keys[layer], past.values[layer]
    return partial(after, np.asarray(keys, dtype), np.asarray(values, dtype))


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Chosen once, before the run; the equations read it and never branch on the config.

    forbidden: (n, m) or (b, 1, n, m), true = may not attend; bias: (h, n, m) or (b, h, n, m).
    reach: the same pairs by blocks of rows, so that what is forbidden is skipped.
    memory (s, d) or (b, s, d) is what cross-attention reads, memory_forbidden (1, s) or
    (b, 1, 1, s) what of it may not be. recall joins the past's keys and values to a block's own.
    """

    norm: Norm
    feed_forward: FeedForward
    scale: float
    softcap: float | None
    qk_norm: QkNorm
    turn: Turn
    bias: Array | None
    forbidden: Bools | None
    reach: Reach
    pattern: Pattern
    update: Update
    residual_multiplier: float
    memory: Array = field(default_factory=lambda: NO_MEMORY)
    memory_forbidden: Bools | None = None
    memory_reach: Reach = EVERYTHING
    recall: Recall = alone


def settings_for(
    config: ModelConfig, inputs: Inputs, w: StackWeights, memory: Array = NO_MEMORY
) -> Iterator[Setting]:
    """The setting of each block in turn, made when it is its turn; blocks that are alike share one.

    The last `ALTERNATING` are held, so that blocks of two kinds by turns are made once.
    """
    if _is_plain(config, inputs):
        yield from _plain_settings(config, inputs.positions, w.dtype)
        return
    key_ids = positions.key_ids_for(inputs)
    bias = positions.score_bias(config, key_ids, inputs.positions, w)
    held: dict[ModelConfig, Setting] = {}
    for layer in range(config.n_layers):
        own = block_config(config, layer)
        setting = held.pop(own, None) or _setting_for(own, inputs, key_ids, w.dtype, bias, memory)
        while len(held) >= ALTERNATING:
            del held[next(iter(held))]
        held[own] = setting
        recall = recall_for(inputs.past, layer, w.dtype)
        yield setting if recall is alone else replace(setting, recall=recall)


def _is_plain(config: ModelConfig, inputs: Inputs) -> bool:
    """Whether the config and the count of rows say all: few rows with nothing of their own.

    Not of a multiplier of 0, which -0 is equal to and gives other bits.
    """
    own = (inputs.position_ids, inputs.key_mask, inputs.attention_mask, inputs.past, inputs.memory)
    weighed = config.position.kind in ("alibi", "t5_bias")
    rows, kinds = inputs.positions, max(1, len(config.layers))
    is_small = kinds * rows * (rows + config.attention.d_head) <= MOST_HELD
    scales = [config.residual_multiplier, config.attention.scale]
    scales += [layer.scale for layer in config.layers]
    return is_small and not weighed and all(scales) and all(part is None for part in own)


@lru_cache(maxsize=64)
def _plain_settings(config: ModelConfig, rows: int, dtype: DType) -> tuple[Setting, ...]:
    """The settings of every block, held from run to run: small runs spend much of their time on
    them."""
    inputs, ids = Inputs(token_ids=np.arange(rows)), np.arange(rows)
    made = {
        own: _setting_for(own, inputs, ids, dtype, None, NO_MEMORY)
        for own in map(partial(block_config, config), range(config.n_layers))
    }
    return tuple(made[block_config(config, layer)] for layer in range(config.n_layers))


def _setting_for(
    config: ModelConfig,
    inputs: Inputs,
    key_ids: Ints,
    dtype: DType,
    bias: Array | None,
    memory: Array,
) -> Setting:
    """Masks joined by AND, positions from ids, everything else by name."""
    attention = config.attention
    forbidden, memory_forbidden = (
        masks.for_inputs(attention, inputs),
        masks.of_memory(inputs.memory),
    )
    return Setting(
        norm=NORMS[config.norm.kind],
        feed_forward=feed_forward_for(config.ffn),
        scale=attention.scale,
        softcap=attention.softcap,
        qk_norm=qk_norm_for(config),
        turn=positions.turn_for(config.position, key_ids, dtype),
        bias=bias,
        forbidden=forbidden,
        reach=reach_of(forbidden),
        pattern=sink_pattern if attention.sinks else plain_pattern,
        update=update_for(config.residual_multiplier),
        residual_multiplier=config.residual_multiplier,
        memory=memory,
        memory_forbidden=memory_forbidden,
        memory_reach=reach_of(memory_forbidden),
    )
