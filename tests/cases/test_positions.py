"""Positions, as implementations have got them wrong in public: small exact cases."""

import math

import numpy as np
import pytest

from cases import small
from cases.small import Array, Config

# RoPE: which coordinates turn together.


def turned(width: int, unit: int, **rope: object) -> dict[str, Array]:
    """A unit vector as query and twice it as key, at position 1."""
    config = small.model(
        width, attention=small.attention(1, width), position=small.rope(width, **rope)
    )
    eye = np.eye(width)[None]
    given = {"attn.W_Q": eye, "attn.W_K": 2 * eye}
    return small.block(config, given, tensor=[np.eye(width)[unit]], position_ids=[1])


@pytest.mark.parametrize(
    ("pairing", "unit", "expected"),
    [
        ("half", 0, [0.54030, 0, 0.84147, 0]),
        ("interleaved", 0, [0.54030, 0.84147, 0, 0]),
        ("half", 2, [-0.84147, 0, 0.54030, 0]),
        ("interleaved", 1, [-0.84147, 0.54030, 0, 0]),
        # the second pair turns by 1e4^(-1/2) = 0.01
        ("half", 1, [0, 0.99995, 0, 0.0099998]),
        ("interleaved", 2, [0, 0, 0.99995, 0.0099998]),
        ("half", 3, [0, -0.0099998, 0, 0.99995]),
        ("interleaved", 3, [0, 0, -0.0099998, 0.99995]),
    ],
)
def test_the_pairing_says_which_coordinates_turn_together(
    pairing: str, unit: int, expected: list[float]
) -> None:
    stages = turned(4, unit, pairing=pairing)
    small.close(stages["attn.q_rot"], [[expected]], atol=5e-6)
    small.close(stages["attn.k_rot"], 2 * stages["attn.q_rot"], atol=1e-15)


def test_the_pairings_agree_once_the_coordinates_are_put_in_the_others_order() -> None:
    heads = small.attention(3, 6)
    half = small.model(5, attention=heads, position=small.rope(6))
    interleaved = half | {"position": small.rope(6, pairing="interleaved")}
    named = small.drawn(half, 0)
    order = [0, 3, 1, 4, 2, 5]  # coordinate 2i of the one is i of the other, 2i + 1 is i + 3
    permuted = dict(named)
    for letter in "QK":
        permuted[f"blocks.0.attn.W_{letter}"] = named[f"blocks.0.attn.W_{letter}"][:, :, order]
    rows = np.random.default_rng(1).standard_normal((7, 5))
    scores = [
        small.stages_of(small.run(config, weights, tensor=rows))["attn.scores"]
        for config, weights in ((half, named), (interleaved, permuted), (interleaved, named))
    ]
    # the same products in another order
    small.close(scores[1], scores[0], atol=1e-14)
    assert np.abs(scores[2] - scores[0]).max() > 1e-2


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize("rotary", [2, 4, 6])
def test_coordinates_beyond_the_rotary_width_pass_through(pairing: str, rotary: int) -> None:
    heads = small.attention(2, 7)
    config = small.model(7, attention=heads, position=small.rope(rotary, pairing=pairing))
    named = small.drawn(config, 0)
    rows = np.random.default_rng(1).standard_normal((5, 7))
    stages = small.stages_of(small.run(config, named, tensor=rows))
    for name in ("attn.q", "attn.k"):
        plain, rotated = stages[name], stages[f"{name}_rot"]
        assert rotated[..., rotary:].tolist() == plain[..., rotary:].tolist()
        small.close(rotated[:, 0], plain[:, 0], atol=0)  # position 0 turns nothing
        length = np.linalg.norm(plain, axis=-1)
        small.close(np.linalg.norm(rotated, axis=-1), length, atol=1e-14)


@pytest.mark.parametrize(("rotary", "theta"), [(2, 1e4), (4, 1e4), (6, 5e5), (8, 100.0)])
def test_pair_i_turns_by_theta_to_the_minus_2i_over_the_rotary_width(
    rotary: int, theta: float
) -> None:
    for i in range(rotary // 2):
        first = turned(rotary, i, theta=theta)["attn.q_rot"][0, 0]
        angle = theta ** (-2 * i / rotary)
        assert first[i] == pytest.approx(math.cos(angle), abs=1e-15)
        assert first[i + rotary // 2] == pytest.approx(math.sin(angle), abs=1e-15)


# ALiBi: the slopes, and what they take from a score.

EIGHTHS = {
    1: [8],
    2: [4, 8],
    3: [4, 8, 2],
    4: [2, 4, 6, 8],
    5: [2, 4, 6, 8, 1],
    6: [2, 4, 6, 8, 1, 3],
    7: [2, 4, 6, 8, 1, 3, 5],
    8: [1, 2, 3, 4, 5, 6, 7, 8],
    9: [1, 2, 3, 4, 5, 6, 7, 8, 0.5],
    10: [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5],
    11: [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5],
    12: [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5],
    13: [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5, 4.5],
    14: [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5],
    15: [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5],
    16: [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8],
}
"""Heads -> x of each slope 2^-x, by the rule of the ALiBi paper's code and of BLOOM: those of
the power of two below, then every other one of the next power of two."""


def scores_of(h: int, rule: str, **given: object) -> Array:
    """Scores where all dot products are 0."""
    position = {"kind": "alibi", "alibi_rule": rule}
    config = small.model(3, attention=small.attention(h, 2, **given), position=position)
    return small.block(config, tensor=np.ones((5, 3)))["attn.scores"]


@pytest.mark.parametrize("h", EIGHTHS)
def test_blooms_slopes_are_the_published_ones_for_1_to_16_heads(h: int) -> None:
    slopes = np.array([2.0**-x for x in EIGHTHS[h]])
    scores = scores_of(h, "bloom")
    np.testing.assert_allclose(-scores[:, 1, 0], slopes, rtol=1e-15)
    for n in range(5):
        for m in range(5):
            expected = -slopes * abs(n - m)
            np.testing.assert_allclose(scores[:, n, m], expected, rtol=1e-15)


@pytest.mark.parametrize("h", range(1, 17))
def test_geometric_slopes_start_at_2_to_the_minus_8_over_h(h: int) -> None:
    slopes = [math.exp(-8 * (i + 1) / h * math.log(2)) for i in range(h)]
    np.testing.assert_allclose(-scores_of(h, "geometric")[:, 1, 0], slopes, rtol=1e-14)


def test_the_rules_differ_unless_the_heads_are_a_power_of_two() -> None:
    for h in range(1, 17):
        same = np.allclose(scores_of(h, "bloom"), scores_of(h, "geometric"), rtol=1e-12)
        assert same == (h in {1, 2, 4, 8, 16}), h


def test_six_heads_have_the_slopes_of_each_rule_in_numbers() -> None:
    bloom = [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]
    small.close(-scores_of(6, "bloom")[:, 1, 0], bloom, atol=1e-16)
    geometric = [0.39685026, 0.15749013, 0.0625, 0.02480314, 0.00984313, 0.00390625]
    small.close(-scores_of(6, "geometric")[:, 1, 0], geometric, atol=5e-9)


def test_the_bias_is_added_after_the_scale() -> None:
    small.close(scores_of(2, "bloom", scale=1e6), scores_of(2, "bloom"), atol=0)


# Padding on the left moves nothing.

SCALED = {"factor": 4.0, "original_positions": 2}
SCALINGS: dict[str, Config] = {
    "linear": {"factor": 4.0},
    "dynamic": SCALED,
    "yarn": SCALED | {"beta_fast": 32.0, "beta_slow": 1.0, "attention_factor": 1.25},
    "llama3": SCALED | {"low_freq_factor": 1.0, "high_freq_factor": 4.0},
}
"""Made for two positions, so that three are more than that."""

T5: Config = {"kind": "t5_bias", "n_buckets": 8, "max_distance": 5}
PLACES: dict[str, Config] = {
    "rope": small.rope(4),
    **{
        f"rope, {kind}": small.rope(4, scaling={"kind": kind, **given})
        for kind, given in SCALINGS.items()
    },
    "alibi": {"kind": "alibi", "alibi_rule": "bloom"},
    "t5_bias": T5 | {"bidirectional": True},
    "t5_bias, one way": T5 | {"bidirectional": False},
    "learned": {"kind": "learned", "n_positions": 7},
    "sinusoidal": {"kind": "sinusoidal"},
    "none": small.NONE,
}
REAL = np.random.default_rng(3).standard_normal((3, 5))


def padded(rows: Array, pads: int) -> Array:
    """Rows of something else in front."""
    return np.concatenate([np.full((pads, 5), 9.0), rows])


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("pads", [1, 2, 4])
@pytest.mark.parametrize("mask", ["causal", "full"])
@pytest.mark.parametrize("kind", PLACES)
def test_padding_on_the_left_moves_nothing(
    kind: str, mask: str, pads: int, *, explicit: bool
) -> None:
    config = small.model(
        5, attention=small.attention(3, 4, mask=mask), ffn=small.mlp(7), position=PLACES[kind]
    )
    named = small.drawn(config, 2)
    given = {"key_mask": [False] * pads + [True] * 3}
    if explicit:
        given["position_ids"] = [0] * pads + [0, 1, 2]
    alone = small.stages_of(small.run(config, named, tensor=REAL))
    beside = small.stages_of(small.run(config, named, tensor=padded(REAL, pads), **given))
    # a longer sum over keys, with zeros added
    small.close(beside["resid_post"][pads:], alone["resid_post"], atol=1e-13)
    small.close(beside["attn.scores"][:, pads:, pads:], alone["attn.scores"], atol=1e-13)


@pytest.mark.parametrize("kind", PLACES)
def test_each_row_of_a_batch_has_its_own_padding(kind: str) -> None:
    config = small.model(5, attention=small.attention(3, 4), position=PLACES[kind])
    named = small.drawn(config, 2)
    texts = [REAL, REAL[:2], REAL[:1]]
    rows = np.stack([padded(text, 3 - len(text)) for text in texts])
    real = [[False] * (3 - len(text)) + [True] * len(text) for text in texts]
    together = small.stages_of(small.run(config, named, tensor=rows, key_mask=real))
    for element, text in enumerate(texts):
        alone = small.stages_of(small.run(config, named, tensor=text))
        own = together["resid_post"][element, 3 - len(text) :]
        small.close(own, alone["resid_post"], atol=1e-13)


@pytest.mark.parametrize("kind", PLACES)
def test_padding_in_a_memory_moves_nothing(kind: str) -> None:
    parts = {"attention": small.attention(3, 4), "ffn": small.mlp(7)}
    config = small.model(5, **parts) | {"cross_attention": True}
    config["encoder"] = small.model(5, **parts, position=PLACES[kind])
    named = small.drawn(config, 2)
    mask = [False, False, True, True, True]
    alone, beside = (
        small.stages_of(small.run(config, named, tensor=REAL, memory=memory))
        for memory in ({"tensor": REAL}, {"tensor": padded(REAL, 2), "key_mask": mask})
    )
    small.close(beside["resid_post"], alone["resid_post"], atol=1e-13)


def test_a_masked_key_further_on_keeps_its_place() -> None:
    config = small.model(5, ffn=small.mlp(7), position={"kind": "learned", "n_positions": 7})
    named = small.drawn(config, 2)
    mask = [False, True, False, True, False]
    stages = small.stages_of(small.run(config, named, tensor=np.zeros((5, 5)), key_mask=mask))
    table = named["pos_embed.W_pos"]
    assert stages["pos_embed"].tolist() == table[[0, 0, 1, 2, 3]].tolist()


def test_positions_are_added_once_below_the_stack() -> None:
    config = small.model(3, ffn=small.mlp(2), position=PLACES["sinusoidal"]) | {"n_layers": 2}
    stages = small.stages_of(small.run(config, small.values(config, {}), tensor=np.zeros((2, 3))))
    # sin 0, cos 0; sin 1, cos 1; the odd last column is a sine of p / 10000^(2/3)
    expected = [[0, 1, 0], [0.8414709848, 0.5403023059, 0.0021544330]]
    small.close(stages["pos_embed"], expected, atol=5e-11)
    assert stages["resid_pre"].tolist() == stages["pos_embed"].tolist()
    assert stages["blocks.1.resid_pre"].tolist() == stages["pos_embed"].tolist()
