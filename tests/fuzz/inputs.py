"""Inputs of a resolved config, drawn by Hypothesis: rows or tokens, masks, positions, a memory."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from fuzz.parts import ROWS, Draw, Drawn
from oracle import inputs

Given = dict[str, Any]
"""Arrays by keyword; of a memory the same once more."""

Rng = np.random.Generator


def drawn_inputs(draw: Draw, rng: Rng, config: Drawn) -> Given:
    """Of a batch or not; with a memory where one is read."""
    batch = draw(st.sampled_from(((), (1,), (2,), (3,))))
    found = of_stack(draw, rng, config, config["vocab"], batch)
    if config["cross_attention"]:
        found["memory"] = of_memory(draw, rng, config, batch)
    return found


def of_stack(
    draw: Draw, rng: Rng, config: Drawn, vocab: int | None, batch: tuple[int, ...]
) -> Given:
    """Rows or tokens, with masks, types and position ids or without."""
    n = draw(st.integers(1, 9))
    found: Given = {}
    if vocab is not None and draw(st.booleans()):
        found["token_ids"] = rng.integers(vocab, size=(*batch, n))
    else:
        found["tensor"] = rng.standard_normal((*batch, n, config["d_model"]))
    if draw(st.booleans()):
        found["key_mask"] = inputs.key_mask(rng, draw(st.sampled_from(((), batch))), n)
    if draw(st.booleans()):
        found["attention_mask"] = inputs.attention_mask(rng, batch, n)
    if draw(st.booleans()):
        found["position_ids"] = rng.integers(ROWS, size=(*batch, n))
    if config["token_types"] and draw(st.booleans()):
        shape = (*draw(st.sampled_from(((), batch))), n)
        found["token_types"] = rng.integers(config["token_types"], size=shape)
    return found


def of_memory(draw: Draw, rng: Rng, config: Drawn, batch: tuple[int, ...]) -> Given:
    """An encoder's input; without one rows, and which of them may be attended to."""
    if config["encoder"] is not None:
        return of_stack(draw, rng, config["encoder"], config["vocab"], batch)
    s = draw(st.integers(1, 9))
    found: Given = {"tensor": rng.standard_normal((*batch, s, config["d_model"]))}
    if draw(st.booleans()):
        found["key_mask"] = inputs.key_mask(rng, draw(st.sampled_from(((), batch))), s)
    return found
