"""Which keys a query may not attend to. True = forbidden here; requests say what is allowed."""

from collections.abc import Iterator
from functools import reduce

import numpy as np

from compute.config import AttentionConfig, ModelConfig, block_config
from compute.types import Bools, Inputs


def forbidden_pairs(
    attention: AttentionConfig,
    positions: int,
    key_mask: Bools | None,
    attention_mask: Bools | None,
    past: int = 0,
) -> Bools | None:
    """(n, m), or (b, 1, n, m) where a mask has a batch axis; None where all pairs are allowed.

    A pair is allowed where every rule allows it: causal (m <= n, by row), window (|n - m| <
    window, which counts the query itself), key_mask (m) and attention_mask (n, m). The queries
    are rows past, past + 1, … of the keys.
    """
    rules: list[Bools] = [
        rule
        for rule in (
            _causal(positions, past) if attention.mask == "causal" else None,
            _outside(positions, past, attention.window),
            None if key_mask is None else _of_keys(key_mask, positions),
            None if attention_mask is None else _for_heads(~attention_mask),
        )
        if rule is not None
    ]
    return reduce(_either, rules) if rules else None


def for_inputs(attention: AttentionConfig, inputs: Inputs) -> Bools | None:
    """The forbidden pairs of an input: its own masks and the config's rules."""
    if attention.kind == "none":
        return None
    past = inputs.keys - inputs.positions
    return forbidden_pairs(
        attention, inputs.positions, keys_of(inputs), inputs.attention_mask, past
    )


def keys_of(inputs: Inputs) -> Bools | None:
    """The mask of all keys, the past's and then the rows': (m) or (b, m); None: all may be."""
    past = inputs.past
    if past is None:
        return inputs.key_mask
    given = ((past.key_mask, past.positions), (inputs.key_mask, inputs.positions))
    if all(mask is None for mask, _ in given):
        return None
    masks = [np.ones(length, np.bool_) if mask is None else mask for mask, length in given]
    batch = np.broadcast_shapes(*(mask.shape[:-1] for mask in masks))
    return np.concatenate([np.broadcast_to(m, (*batch, m.shape[-1])) for m in masks], axis=-1)


def of_memory(memory: Inputs | None) -> Bools | None:
    """Which rows of a memory no query may attend to: (1, s) or (b, 1, 1, s); None: all may be."""
    if memory is None or memory.key_mask is None:
        return None
    hidden = ~memory.key_mask[..., None, :]
    return hidden if hidden.ndim == 2 else hidden[:, None]


def without_keys(config: ModelConfig, inputs: Inputs) -> dict[str, Bools]:
    """Pattern's full name -> its queries with no allowed key, (n) or (b, 1, n), of each pattern
    that a given mask may leave some: in blocks, in cross-attention, in the encoder's blocks."""
    found = {f"blocks.{at}.attn.pattern": rows for at, rows in _in_stack(config, inputs)}
    memory = inputs.memory
    if config.cross_attention and memory is not None:
        across = of_memory(memory)
        pairs = None if across is None else _for_each_query(across, inputs.positions)
        rows = fully_masked(pairs)
        found |= {f"blocks.{at}.cross.pattern": rows for at in range(config.n_layers)}
    if config.encoder is not None and memory is not None:
        own = _in_stack(config.encoder, memory)
        found |= {f"encoder.blocks.{at}.attn.pattern": rows for at, rows in own}
    return {name: rows for name, rows in found.items() if rows is not None}


def _in_stack(config: ModelConfig, inputs: Inputs) -> Iterator[tuple[int, Bools | None]]:
    """Each block's queries with no allowed key; the pairs of one window at a time."""
    if _is_seen_by_all(inputs):
        return
    made: dict[int | None, Bools | None] = {}
    for layer in range(config.n_layers):
        attention = block_config(config, layer).attention
        if attention.window not in made:
            made[attention.window] = fully_masked(for_inputs(attention, inputs))
        yield layer, made[attention.window]


def _is_seen_by_all(inputs: Inputs) -> bool:
    """No mask is given: a query may attend to itself at least, whatever the config's rules are."""
    return inputs.attention_mask is None and keys_of(inputs) is None


def _for_each_query(pairs: Bools, positions: int) -> Bools:
    return np.broadcast_to(pairs, (*pairs.shape[:-2], positions, pairs.shape[-1]))


def fully_masked(forbidden: Bools | None) -> Bools | None:
    """(..., n): the queries with no allowed key, or None where nothing is masked."""
    return None if forbidden is None else np.asarray(forbidden.all(axis=-1))


def _of_keys(key_mask: Bools, positions: int) -> Bools:
    """(m) -> (n, m), (b, m) -> (b, 1, n, m): each query's row is the same."""
    *batch, keys = key_mask.shape
    pairs = np.broadcast_to(~key_mask[..., None, :], (*batch, positions, keys))
    return _for_heads(pairs)


def _for_heads(pairs: Bools) -> Bools:
    """(n, m) as it is, (b, n, m) -> (b, 1, n, m)."""
    return pairs if pairs.ndim == 2 else pairs[:, None]


def _either(x: Bools, y: Bools) -> Bools:
    return np.logical_or(x, y)


def _causal(positions: int, past: int) -> Bools:
    keys = np.arange(past + positions, dtype=np.int32)
    return np.greater(keys, keys[past:, None])


def _outside(positions: int, past: int, window: int | None) -> Bools | None:
    if window is None or window >= past + positions:
        return None
    keys = np.arange(past + positions)
    return np.abs(keys[past:, None] - keys) >= window
