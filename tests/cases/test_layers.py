"""What blocks have of their own, as implementations have got it wrong in public: small cases."""

import math

import numpy as np
import pytest

from cases import small
from cases.small import Array, Config

PLAIN: Config = {"kind": "none"}


def layer(**given: object) -> Config:
    """A block's own entry: no window, scale 1, nothing turned, unless given otherwise."""
    return {"window": None, "scale": 1.0, "theta": None, "scaling": PLAIN, **given}


def layered(d: int, layers: list[Config], **parts: object) -> Config:
    """A stack with an entry for each block."""
    return small.model(d, **parts) | {"n_layers": len(layers), "layers": layers}


def of_block(stages: dict[str, Array], at: int, name: str) -> Array:
    return stages[name if at == 0 else f"blocks.{at}.{name}"]


# Which block is local is said, never inferred from its place.

LOCAL_THEN_GLOBAL = [1, None]


@pytest.mark.parametrize(
    "windows",
    [LOCAL_THEN_GLOBAL, [None, 1], [1, 1], [None, None], [1, None, None, 1], [None, 2, 1]],
)
def test_each_block_has_the_window_of_its_own_entry(windows: list[int | None]) -> None:
    heads = small.attention(3, 2, mask="causal", window=2)
    config = layered(5, [layer(window=window) for window in windows], attention=heads)
    stages = small.stages_of(small.run(config, small.values(config, {}), tensor=np.ones((3, 5))))
    for at, window in enumerate(windows):
        allowed = np.tri(3) - (0 if window is None else np.tri(3, k=-window))
        expected = allowed / allowed.sum(axis=1, keepdims=True)
        small.close(of_block(stages, at, "attn.pattern"), [expected] * 3, atol=1e-16)


def test_a_local_block_and_a_global_one_in_numbers() -> None:
    heads = small.attention(1, 2, mask="causal")
    config = layered(5, [layer(window=1), layer()], attention=heads)
    stages = small.stages_of(small.run(config, small.values(config, {}), tensor=np.ones((3, 5))))
    small.close(stages["attn.pattern"], [np.eye(3)], atol=0)
    small.close(stages["blocks.1.attn.pattern"][0, 2], [1 / 3, 1 / 3, 1 / 3], atol=1e-16)


# The scale is a block's own, and a multiplier.


def scores_of(config: Config) -> list[float]:
    """q = k = [2, 0, 0, 0] in each block."""
    named = small.values(config, {})
    for at in range(config["n_layers"]):
        for letter in "QK":
            named[f"blocks.{at}.attn.W_{letter}"] = np.eye(4)[None]
    stages = small.stages_of(small.run(config, named, tensor=[[2, 0, 0, 0]]))
    return [of_block(stages, at, "attn.scores").item() for at in range(config["n_layers"])]


@pytest.mark.parametrize(
    ("scales", "expected"),
    [
        ([4**-0.5] * 3, [2.0, 2.0, 2.0]),
        ([1.0] * 2, [4.0, 4.0]),  # GPT-Neo, T5: none
        ([16**-0.5] * 2, [1.0, 1.0]),  # Gemma 2's query_pre_attn_scalar = 16
        ([0.5, 0.25, 0.125], [2.0, 1.0, 0.5]),
        ([0.5 / (at + 1) for at in range(4)], [2.0 / (at + 1) for at in range(4)]),
    ],
)
def test_each_block_multiplies_by_the_scale_of_its_own_entry(
    scales: list[float], expected: list[float]
) -> None:
    config = layered(4, [layer(scale=x) for x in scales], attention=small.attention(1, 4, scale=9))
    np.testing.assert_allclose(scores_of(config), expected, rtol=1e-15)


def test_without_entries_every_block_has_the_scale_of_the_stack() -> None:
    config = small.model(4, attention=small.attention(1, 4, scale=0.25)) | {"n_layers": 3}
    assert scores_of(config) == [1.0, 1.0, 1.0]


# Some blocks turn, others do not, and each by its own theta.


def test_a_block_without_theta_turns_nothing_and_the_others_turn_by_their_own() -> None:
    entries = [
        layer(theta=1e4),
        layer(),
        layer(theta=100.0),
        layer(theta=100.0, scaling={"kind": "linear", "factor": 2.0}),
    ]
    heads = small.attention(1, 4)
    config = layered(4, entries, attention=heads, position=small.rope(4, theta=7.0))
    named = small.values(config, {})
    for at in range(4):
        named[f"blocks.{at}.attn.W_Q"] = np.eye(4)[None]
    rows, ids = [[0, 1, 0, 0]], [3]
    stages = small.stages_of(small.run(config, named, tensor=rows, position_ids=ids))
    for at, angle in ((0, 3 * 0.01), (2, 3 * 0.1), (3, 3 * 0.05)):
        turned = [[[0, math.cos(angle), 0, math.sin(angle)]]]
        small.close(of_block(stages, at, "attn.q_rot"), turned, atol=1e-15)
    assert "blocks.1.attn.q_rot" not in stages


@pytest.mark.parametrize("explicit", [False, True])
def test_padding_moves_no_block_whatever_it_has_of_its_own(*, explicit: bool) -> None:
    dynamic = {"kind": "dynamic", "factor": 4.0, "original_positions": 2}
    entries = [layer(window=2), layer(theta=100.0), layer(theta=1e4, scaling=dynamic)]
    parts = {"attention": small.attention(3, 4, mask="causal"), "position": small.rope(4)}
    config = layered(5, entries, **parts, ffn=small.mlp(7))
    named, rows = small.drawn(config, 2), np.random.default_rng(3).standard_normal((5, 5))
    given = {"position_ids": [0, 0, 0, 1, 2]} if explicit else {}
    keys = [False, False, True, True, True]
    padded = small.run(config, named, tensor=rows, key_mask=keys, **given)
    alone = small.run(config, named, tensor=rows[2:])
    last = "blocks.2.resid_post"
    # a longer sum over keys, with zeros added
    small.close(small.stages_of(padded)[last][2:], small.stages_of(alone)[last], atol=1e-13)
