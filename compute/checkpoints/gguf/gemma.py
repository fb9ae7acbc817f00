"""Gemma 2 and 3 in GGUF: the +1 of their norms is in the weights, the scale of attention and the
blocks that slide are those of the published models."""

import numpy as np

from compute.checkpoints.families._attention import FULL, SLIDING
from compute.checkpoints.gguf.keys import Keys, Raw, rms_norm, rope, shared

GEMMA2_KEYS: frozenset[str] = frozenset(
    {
        "attention.sliding_window",
        "attention.sliding_window_pattern",
        "attn_logit_softcapping",
        "final_logit_softcapping",
    }
)
GEMMA3_KEYS: frozenset[str] = GEMMA2_KEYS | {"rope.freq_base_swa"}

_BLOCKS_OF_27B_2, _BLOCKS_OF_27B_3 = 46, 62
"""Blocks of the models of 27 billion, where the scale is that of heads of d_model / heads."""


def gemma2(keys: Keys) -> Raw:
    """A window in every second block, the first among them, where the file lists no others."""
    window = keys.size_or("attention.sliding_window", 4096)
    return {**_gemma(keys, _BLOCKS_OF_27B_2, 2), **rope(keys), "sliding_window": window}


def gemma3(keys: Keys) -> Raw:
    """No window in every sixth block, where the file says no other; none at all without its size.

    Blocks that slide turn by a base of their own, unscaled.
    """
    everywhere = rope(keys, 1e6)["rope_parameters"]
    local = {"rope_theta": keys.number_or("rope.freq_base_swa", 10000.0)}
    turned = {FULL: everywhere, SLIDING: local}
    if not keys.has("attention.sliding_window"):
        return {**_gemma(keys, _BLOCKS_OF_27B_3, 1), "rope_parameters": turned}
    window = keys.size("attention.sliding_window")
    raw = {**_gemma(keys, _BLOCKS_OF_27B_3, 6), "rope_parameters": turned}
    return {**raw, "sliding_window": window}


def _gemma(keys: Keys, largest: int, period: int) -> Raw:
    raw = {**shared(keys), **rms_norm(keys)}
    width = keys.size("embedding_length") // keys.size("attention.head_count")
    raw["query_pre_attn_scalar"] = width if raw["num_hidden_layers"] == largest else raw["head_dim"]
    for name in ("attn_logit_softcapping", "final_logit_softcapping"):
        if keys.has(name):
            raw[name] = keys.number(name)
    raw["layer_types"] = _layer_types(keys, period)
    return raw


def _layer_types(keys: Keys, period: int) -> list[str]:
    """The last of each period attends to everything, unless the file lists who slides."""
    blocks = range(keys.size("block_count"))
    given = keys.fields.raw.get(keys.key("attention.sliding_window_pattern"))
    if isinstance(given, np.ndarray) and len(given) == len(blocks):
        return [SLIDING if slides else FULL for slides in given]
    every = keys.size_or("attention.sliding_window_pattern", period)
    return [SLIDING if (block + 1) % every else FULL for block in blocks]
