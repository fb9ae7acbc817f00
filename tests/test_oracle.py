"""The reference forward pass against numbers that are not its own: the article's, and values
worked out by hand for what transformer implementations have got wrong in public."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from oracle import functions, positions, weights
from oracle.configs import random_case
from oracle.forward import trace

Array = npt.NDArray[np.float64]
Config = dict[str, Any]

NONE = {"kind": "none"}
SWAP = [[0, 1], [1, 0]]
TOY = [[0, 0], [0, 1], [1, 0]]  # the, Eiffel, tower: structure, Paris identity
LOW = 1 / (2 + 2.028114981647472451)
HIGH = 2.028114981647472451 / (2 + 2.028114981647472451)
"""Softmax of 0, 1/√2, 0: the number is e^(1/√2)."""


def softmax_attention(h: int, k: int, **given: object) -> Config:
    """Heads of equal widths, scaled by 1/sqrt(k), all biases off, unless given otherwise."""
    off = {"q": False, "k": False, "v": False, "o": False}
    plain = {"kind": "softmax", "n_heads": h, "n_kv_heads": h, "d_head": k, "d_value": k}
    return {**plain, "scale": k**-0.5, "mask": "full", "window": None, "bias": off, **given}


def mlp(f: int, **given: object) -> Config:
    """Two matrices with their biases, unless given otherwise."""
    bias = {"in": True, "gate": False, "out": True}
    return {"kind": "mlp", "d_ff": f, "activation": "gelu", "bias": bias, **given}


def norm(kind: str, **given: object) -> Config:
    """Before each sublayer, the stored weight being the gain, unless given otherwise."""
    return {"kind": kind, "placement": "pre", "eps": 1e-5, "gain_offset": 0.0, **given}


def model(d: int, **parts: object) -> Config:
    """One block of the parts that are given, nothing else."""
    nothing = {"attention": NONE, "ffn": NONE, "norm": NONE, "position": NONE}
    above = {"vocab": None, "tied": False, "unembed_bias": False, "final_norm": False}
    return {"d_model": d, "n_layers": 1, **nothing, **above, **parts}


def tensors(config: Config, **given: npt.ArrayLike) -> dict[str, Array]:
    """Ones for the norms' weights and zeros for the rest, but block 0's given ones.

    A name is written with `__` for its dot: `attn__W_Q`.
    """
    named = {
        name: np.ones(shape) if name.endswith(".weight") else np.zeros(shape)
        for name, shape in weights.shapes(config).items()
    }
    own = {f"blocks.0.{name.replace('__', '.')}": value for name, value in given.items()}
    assert own.keys() <= named.keys()
    for name, value in own.items():
        named[name] = np.asarray(value, dtype=np.float64)
    return named


def toy(w_o: npt.ArrayLike) -> dict[str, Array]:
    """Block 0 of the article's example: swap-query projection, identity keys and values."""
    config = model(2, attention=softmax_attention(1, 2))
    eye = [np.eye(2)]
    given = {"attn__W_Q": [SWAP], "attn__W_K": eye, "attn__W_V": eye, "attn__W_O": [w_o]}
    return block_of(config, tensors(config, **given), tensor=TOY)


def block_of(config: Config, named: dict[str, Array], **inputs: npt.ArrayLike) -> dict[str, Array]:
    """Block 0's stages without their prefix."""
    stages = trace(config, named, **inputs)
    return {name.removeprefix("blocks.0."): value for name, value in stages.items()}


def close(got: npt.ArrayLike, expected: npt.ArrayLike, atol: float) -> None:
    np.testing.assert_allclose(got, expected, rtol=0, atol=atol)


# The article's example.


def test_the_receiving_position_takes_the_weights_of_the_article() -> None:
    close(toy(np.eye(2))["attn.pattern"][0, 2], [0.2483, 0.5035, 0.2483], atol=5e-5)


def test_the_whole_pattern_of_the_toy_has_its_closed_form() -> None:
    third = 1 / 3
    expected = [[third, third, third], [LOW, LOW, HIGH], [LOW, HIGH, LOW]]
    close(toy(np.eye(2))["attn.pattern"][0], expected, atol=1e-15)


def test_mixture_update_and_result_of_the_toy_are_the_articles() -> None:
    stages = toy(np.eye(2))
    close(stages["attn.z"][0, 2], [0.2483, 0.5035], atol=5e-5)
    close(stages["attn_out"][2], [0.2483, 0.5035], atol=5e-5)
    close(stages["resid_post"][2], [1.2483, 0.5035], atol=5e-5)
    close(stages["resid_post"][2], [1 + LOW, HIGH], atol=1e-15)


def test_a_negated_structure_coordinate_cancels_part_of_the_input() -> None:
    stages = toy(np.diag([-1, 1]))
    close(stages["attn_out"][2], [-0.2483, 0.5035], atol=5e-5)
    close(stages["resid_post"][2], [0.7517, 0.5035], atol=5e-5)


def test_what_the_sources_give_sums_to_what_the_head_gives() -> None:
    stages = toy([[1, 2], [3, 5]])
    close(stages["attn.source_out"].sum(axis=2), stages["attn.head_out"], atol=1e-14)
    expected = [[0, 0], [3 * HIGH, 5 * HIGH], [1 * LOW, 2 * LOW]]
    close(stages["attn.source_out"][0, 2], expected, atol=1e-15)


@pytest.mark.parametrize("query", [12, 17, 4 + 8 + 3000])
def test_rotated_dot_products_depend_on_the_distance_alone(query: int) -> None:
    rope = {"kind": "rope", "theta": 10000.0, "rotary_dim": 2, "pairing": "half"}
    config = model(2, attention=softmax_attention(1, 2), position=rope)
    named = tensors(config, attn__W_Q=[np.eye(2)], attn__W_K=[np.eye(2)])
    stages = block_of(config, named, tensor=[[1, 0], [1, 0]], position_ids=[query, query - 8])
    close(stages["attn.dots"][0, 0, 1], -0.14550003380861354, atol=1e-12)  # cos(8)


def test_a_rotation_of_48_against_one_of_16_degrees_leaves_the_cosine_of_32() -> None:
    rope = {"theta": 10000.0, "rotary_dim": 2, "pairing": "half"}
    turned = [positions.rotate(np.array([1.0, 0.0]), p, rope) for p in (12, 4)]
    close(turned[0], [math.cos(12), math.sin(12)], atol=1e-15)
    degrees = [np.array([math.cos(math.radians(a)), math.sin(math.radians(a))]) for a in (48, 16)]
    close(np.dot(*degrees), 0.8480481, atol=5e-8)


def test_sinusoids_alternate_sine_and_cosine_and_an_odd_width_ends_with_a_sine() -> None:
    expected = [0.8414709848, 0.5403023059, 0.0251162229, 0.9996845379, 0.0006309573]
    close(positions.sinusoid(1, 5), expected, atol=5e-11)


def test_positions_are_added_once_to_a_posted_tensor() -> None:
    config = model(3, ffn=mlp(2), position={"kind": "sinusoidal"}) | {"n_layers": 2}
    stages = trace(config, tensors(config), tensor=np.zeros((2, 3)))
    first = [0.0, 1.0, 0.0]
    close(stages["blocks.0.resid_pre"][0], first, atol=0)
    close(stages["blocks.1.resid_pre"], stages["pos_embed"], atol=0)
    assert "embed" not in stages


def test_unmasked_attention_without_positions_is_permutation_equivariant() -> None:
    config = model(3, attention=softmax_attention(2, 2), ffn=mlp(5), norm=norm("layernorm"))
    rng = np.random.default_rng(0)
    named, rows, order = weights.draw(rng, config), rng.standard_normal((4, 3)), [2, 0, 3, 1]
    straight = block_of(config, named, tensor=rows)["resid_post"]
    permuted = block_of(config, named, tensor=rows[order])["resid_post"]
    close(permuted, straight[order], atol=1e-13)


UPDATES = (".attn_out", ".cross_out", ".ffn_out")


def test_a_stack_without_post_norm_is_its_input_plus_every_update() -> None:
    cases = [random_case(seed) for seed in range(40)]
    for case in cases:
        if case.config["norm"].get("placement") != "post":
            stages = trace(case.config, case.weights, **case.inputs)
            own = [name for name in stages if name.startswith("blocks.")]
            updates = [stages[name] for name in own if name.endswith(UPDATES)]
            last = stages[f"blocks.{case.config['n_layers'] - 1}.resid_post"]
            rounding = 1e-13 * max(1.0, np.abs(last).max())
            close(stages["blocks.0.resid_pre"] + sum(updates), last, atol=rounding)


# Norms.


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([1, 0, 0, 0], [1.73200462, -0.57733487, -0.57733487, -0.57733487]),
        ([1e-3, 0, 0, 0], [0.23497813, -0.07832604, -0.07832604, -0.07832604]),
    ],
)
def test_layer_norm_divides_by_n_and_keeps_eps_inside_the_root(
    x: list[float], expected: list[float]
) -> None:
    config = model(4, ffn=mlp(2), norm=norm("layernorm"))
    stages = block_of(config, tensors(config), tensor=[x])
    close(stages["norm2.out"], [expected], atol=5e-9)
    variance = 3 / 16 * x[0] ** 2
    close(stages["norm2.scale"], [[math.sqrt(variance + 1e-5)]], atol=1e-15)


def test_a_gain_offset_is_added_to_the_stored_weight() -> None:
    config = model(2, ffn=mlp(2), norm=norm("rmsnorm", eps=1e-6, gain_offset=1.0))
    stages = block_of(config, tensors(config, norm2__weight=[0, 0]), tensor=[[3, 4]])
    close(stages["norm2.out"], [[0.8485281, 1.1313708]], atol=1e-7)


def test_normalized_is_before_the_gain_and_the_ffn_reads_what_is_after() -> None:
    config = model(2, ffn=mlp(2), norm=norm("rmsnorm"))
    named = tensors(config, norm2__weight=[2, 2], ffn__W_in=np.eye(2))
    stages = block_of(config, named, tensor=[[3, 4]])
    close(stages["norm2.normalized"], [[0.8485, 1.1314]], atol=5e-5)
    close(stages["norm2.out"], [[1.6971, 2.2627]], atol=5e-5)
    close(stages["ffn.up"], stages["norm2.out"], atol=0)


def both_sublayers(placement: str) -> dict[str, Array]:
    """x = [1, 3]; attention adds [4, 0] and the ffn [0, -6]; LN1 has gain [2, 1], bias [0, 5]."""
    attention = softmax_attention(1, 2)
    attention["bias"] = attention["bias"] | {"o": True}
    placed = norm("layernorm", placement=placement, eps=1e-14)
    config = model(2, attention=attention, ffn=mlp(1), norm=placed)
    named = tensors(
        config,
        attn__W_Q=[np.eye(2)],
        attn__b_O=[4, 0],
        ffn__b_out=[0, -6],
        norm1__weight=[2, 1],
        norm1__bias=[0, 5],
    )
    return block_of(config, named, tensor=[[1, 3]])


def test_post_norm_normalizes_the_sums_and_attention_reads_the_stream_itself() -> None:
    stages = both_sublayers("post")
    close(stages["attn.q"], [[[1, 3]]], atol=1e-12)
    close(stages["attn_sum"], [[5, 3]], atol=1e-12)
    close(stages["resid_mid"], [[2, 4]], atol=1e-12)
    close(stages["ffn_sum"], [[2, -2]], atol=1e-12)
    close(stages["resid_post"], [[1, -1]], atol=1e-12)


def test_pre_norm_normalizes_what_the_sublayers_read_and_adds_to_the_stream() -> None:
    stages = both_sublayers("pre")
    close(stages["attn.q"], [[[-2, 6]]], atol=1e-12)
    close(stages["resid_mid"], [[5, 3]], atol=1e-12)
    close(stages["resid_post"], [[5, -3]], atol=1e-12)
    assert "attn_sum" not in stages
    assert "ffn_sum" not in stages


def test_the_stream_that_enters_is_not_changed_by_its_norm() -> None:
    config = model(2, ffn=mlp(2), norm=norm("rmsnorm"))
    rows = np.array([[3.0, 4.0]])
    stages = block_of(config, tensors(config), tensor=rows)
    close(stages["resid_pre"], [[3, 4]], atol=0)
    close(rows, [[3, 4]], atol=0)


# Activations and the feed-forward network.


@pytest.mark.parametrize(
    ("activation", "x", "expected"),
    [
        ("gelu", 3.0, 2.99595031),
        ("gelu", -1.0, -0.15865525),
        ("gelu_tanh", 3.0, 2.99636261),
        ("gelu_tanh", -1.0, -0.15880801),
        ("quick_gelu", 1.0, 0.84579577),
        ("silu", 1.0, 0.73105858),
        ("relu", -1.0, 0.0),
        ("relu", 3.0, 3.0),
        ("identity", -1.0, -1.0),
    ],
)
def test_each_activation_is_a_function_of_its_own(
    activation: str, x: float, expected: float
) -> None:
    config = model(1, ffn=mlp(1, activation=activation))
    stages = block_of(config, tensors(config, ffn__W_in=[[1]], ffn__W_out=[[1]]), tensor=[[x]])
    close(stages["ffn.hidden"], [[expected]], atol=5e-9)
    close(stages["resid_post"], [[x + expected]], atol=1e-8)


def test_the_two_gelus_are_at_most_4_73e_4_apart() -> None:
    grid = np.linspace(-6, 6, 12001)
    gap = [abs(functions.gelu(x) - functions.gelu_tanh(x)) for x in grid]
    assert max(gap) == pytest.approx(4.73e-4, abs=5e-7)
    assert abs(grid[int(np.argmax(gap))]) == pytest.approx(2.70, abs=5e-3)


def test_the_activation_is_taken_of_the_gate_and_not_of_the_expansion() -> None:
    bias = {"in": True, "gate": True, "out": True}
    config = model(1, ffn=mlp(1, kind="gated", activation="relu", bias=bias))
    named = tensors(config, ffn__b_in=[-3], ffn__b_gate=[2], ffn__W_out=[[1]])
    stages = block_of(config, named, tensor=[[10]])
    close(stages["ffn.hidden"], [[-6]], atol=0)
    close(stages["resid_post"], [[4]], atol=0)


# Heads.


def with_bias(attention: Config, *letters: str) -> Config:
    """The attention with the biases of these letters."""
    return attention | {"bias": attention["bias"] | dict.fromkeys(letters, True)}


def test_heads_are_concatenated_for_each_position() -> None:
    config = model(4, attention=softmax_attention(2, 2, window=1))
    eye = np.eye(4)
    named = tensors(
        config,
        attn__W_V=[eye[:, :2], eye[:, 2:]],
        attn__W_O=[eye[:2], eye[2:]],
    )
    stages = block_of(config, named, tensor=[[1, 2, 3, 4], [5, 6, 7, 8]])
    close(stages["attn_out"], [[1, 2, 3, 4], [5, 6, 7, 8]], atol=0)


def test_neighbouring_heads_share_a_key_value_head() -> None:
    attention = with_bias(softmax_attention(4, 1, n_kv_heads=2), "v")
    config = model(3, attention=attention)
    stages = block_of(config, tensors(config, attn__b_V=[[1], [2]]), tensor=np.ones((2, 3)))
    close(stages["attn.z"][:, :, 0].T, [[1, 1, 2, 2], [1, 1, 2, 2]], atol=0)


def test_a_head_may_be_wider_than_its_share_of_the_stream() -> None:
    config = model(5, attention=softmax_attention(2, 4))
    stages = block_of(config, tensors(config), tensor=np.ones((3, 5)))
    assert config["attention"]["scale"] == 0.5
    assert stages["attn.z"].shape == (2, 3, 4)
    assert stages["attn_out"].shape == (3, 5)


@pytest.mark.parametrize(("scale", "expected"), [(4**-0.5, 2.0), (1.0, 4.0), (16**-0.5, 1.0)])
def test_the_scale_multiplies_the_dot_products(scale: float, expected: float) -> None:
    config = model(4, attention=softmax_attention(1, 4, scale=scale))
    named = tensors(config, attn__W_Q=[np.eye(4)], attn__W_K=[np.eye(4)])
    stages = block_of(config, named, tensor=[[2, 0, 0, 0]])
    assert stages["attn.dots"].item() == 4.0
    assert stages["attn.scores"].item() == expected


def test_heads_and_the_output_bias_sum_to_the_update() -> None:
    config = model(4, attention=with_bias(softmax_attention(2, 2), "v", "o"))
    named = weights.draw(np.random.default_rng(1), config)
    stages = block_of(config, named, tensor=np.eye(3, 4))
    b_o, w_o = named["blocks.0.attn.b_O"], named["blocks.0.attn.W_O"]
    close(stages["attn.head_out"].sum(axis=0) + b_o, stages["attn_out"], atol=1e-15)
    close(stages["attn.head_out"][1], stages["attn.z"][1] @ w_o[1], atol=1e-15)


# Positions inside attention.


@pytest.mark.parametrize(
    ("pairing", "expected"),
    [("half", [0.54030, 0, 0.84147, 0]), ("interleaved", [0.54030, 0.84147, 0, 0])],
)
def test_the_pairing_says_which_coordinates_turn_together(
    pairing: str, expected: list[float]
) -> None:
    rope = {"kind": "rope", "theta": 1e4, "rotary_dim": 4, "pairing": pairing}
    config = model(4, attention=softmax_attention(1, 4), position=rope)
    named = tensors(config, attn__W_Q=[np.eye(4)], attn__W_K=[2 * np.eye(4)])
    stages = block_of(config, named, tensor=[[1, 0, 0, 0]], position_ids=[1])
    close(stages["attn.q_rot"], [[expected]], atol=5e-6)
    close(stages["attn.k_rot"], 2 * stages["attn.q_rot"], atol=1e-15)


def test_the_second_pair_turns_slower_and_the_rest_passes_through() -> None:
    rope = {"theta": 1e4, "rotary_dim": 4, "pairing": "half"}
    turned = positions.rotate(np.array([0.0, 1.0, 0.0, 0.0, 7.0]), 3, rope)
    close(turned, [0, math.cos(0.03), 0, math.sin(0.03), 7], atol=1e-15)


@pytest.mark.parametrize(
    ("rule", "h", "expected"),
    [
        ("bloom", 6, [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]),
        ("bloom", 3, [0.0625, 0.00390625, 0.25]),
        ("bloom", 1, [0.00390625]),
        ("bloom", 2, [0.0625, 0.00390625]),
        ("geometric", 2, [0.0625, 0.00390625]),
        ("geometric", 6, [0.39685026, 0.15749013, 0.0625, 0.02480314, 0.00984313, 0.00390625]),
    ],
)
def test_alibi_takes_its_slopes_by_the_rule(rule: str, h: int, expected: list[float]) -> None:
    position = {"kind": "alibi", "alibi_rule": rule}
    config = model(2, attention=softmax_attention(h, 1), position=position)
    stages = block_of(config, tensors(config), tensor=np.ones((3, 2)))
    close(-stages["attn.scores"][:, 1, 0], expected, atol=5e-9)
    close(-stages["attn.scores"][:, 0, 2], 2 * np.array(expected), atol=1e-8)


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize(
    "position",
    [
        {"kind": "rope", "theta": 1e4, "rotary_dim": 2, "pairing": "half"},
        {"kind": "alibi", "alibi_rule": "bloom"},
        {"kind": "learned", "n_positions": 3},
        {"kind": "sinusoidal"},
    ],
    ids=lambda position: position["kind"],
)
@pytest.mark.parametrize("mask", ["causal", "full"])
def test_padding_on_the_left_moves_nothing(mask: str, position: Config, explicit: bool) -> None:
    attention = softmax_attention(3, 2, mask=mask)
    config = model(5, attention=attention, ffn=mlp(7), position=position)
    rng = np.random.default_rng(2)
    named, rows = weights.draw(rng, config), rng.standard_normal((5, 5))
    given = {"position_ids": [0, 0, 0, 1, 2]} if explicit else {}
    padded = block_of(config, named, tensor=rows, key_mask=[0, 0, 1, 1, 1], **given)
    alone = block_of(config, named, tensor=rows[2:])
    close(padded["resid_post"][2:], alone["resid_post"], atol=1e-12)


def test_positions_count_from_the_first_key_and_holes_do_not_count() -> None:
    assert list(positions.default_ids(np.array([0, 0, 1, 0, 1]))) == [0, 0, 0, 1, 2]
    assert list(positions.default_ids(np.array([0, 0, 0]))) == [0, 0, 0]
    assert list(positions.default_ids(np.array([1, 0, 1]))) == [0, 1, 2]


# Masks. On zero scores, what is allowed is shared out evenly.


def pattern(n: int, attention: Config, **masks: npt.ArrayLike) -> Array:
    """The one head's weights where all scores are equal."""
    config = model(2, attention=attention)
    return block_of(config, tensors(config), tensor=np.ones((n, 2)), **masks)["attn.pattern"][0]


def test_a_row_without_a_key_takes_nothing_and_its_update_is_the_output_bias() -> None:
    attention = with_bias(softmax_attention(1, 2, mask="causal"), "v", "o")
    config = model(2, attention=attention)
    named = tensors(config, attn__b_V=[[5, 7]], attn__W_O=[np.eye(2)], attn__b_O=[0.1, 0.3])
    stages = block_of(config, named, tensor=np.ones((3, 2)), key_mask=[0, 1, 1])
    close(stages["attn.pattern"][0], [[0, 0, 0], [0, 1, 0], [0, 0.5, 0.5]], atol=0)
    close(stages["attn.z"][0], [[0, 0], [5, 7], [5, 7]], atol=0)
    assert stages["attn_out"][0].tolist() == [0.1, 0.3]
    assert np.all(np.isneginf(stages["attn.scores"][0, 0]))


def test_true_means_may_be_attended() -> None:
    full = softmax_attention(1, 2)
    close(pattern(2, full, attention_mask=[[1, 0], [1, 1]]), [[1, 0], [0.5, 0.5]], atol=0)
    close(pattern(2, full, key_mask=[0, 1]), [[0, 1], [0, 1]], atol=0)


def test_the_masks_of_a_batch_may_be_shared_or_each_elements_own() -> None:
    config = model(2, attention=softmax_attention(1, 2, mask="causal"))
    inputs = {"tensor": np.ones((2, 2, 2)), "key_mask": [[1, 1], [0, 1]]}
    own = block_of(config, tensors(config), **inputs)["attn.pattern"]
    close(own[:, 0], [[[1, 0], [0.5, 0.5]], [[0, 0], [0, 1]]], atol=0)
    shared = inputs | {"key_mask": [0, 1]}
    both = block_of(config, tensors(config), **shared)["attn.pattern"]
    close(both[:, 0], [[[0, 0], [0, 1]], [[0, 0], [0, 1]]], atol=0)


def test_a_masked_key_does_not_reach_the_other_rows() -> None:
    config = model(3, attention=softmax_attention(2, 2), ffn=mlp(5), norm=norm("rmsnorm"))
    rng = np.random.default_rng(3)
    named, rows = weights.draw(rng, config), rng.standard_normal((4, 3))
    moved = rows + 1e3 * (np.arange(4) == 2)[:, np.newaxis]
    runs = [block_of(config, named, tensor=x, key_mask=[1, 1, 0, 1]) for x in (rows, moved)]
    others = [0, 1, 3]
    assert np.array_equal(runs[0]["resid_post"][others], runs[1]["resid_post"][others])


def test_a_window_counts_the_query_itself() -> None:
    causal = pattern(4, softmax_attention(1, 2, mask="causal", window=2))
    close(causal[3], [0, 0, 0.5, 0.5], atol=0)
    full = pattern(4, softmax_attention(1, 2, window=2))
    close(full[1], [1 / 3, 1 / 3, 1 / 3, 0], atol=1e-16)
    close(pattern(4, softmax_attention(1, 2, window=1)), np.eye(4), atol=0)


def test_order_and_window_go_by_row_and_not_by_position() -> None:
    rows = pattern(3, softmax_attention(1, 2, mask="causal", window=2), position_ids=[9, 4, 0])
    close(rows, [[1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]], atol=0)


# Embedding and readout.


@pytest.mark.parametrize("tied", [True, False])
def test_tokens_are_looked_up_and_read_out(tied: bool) -> None:
    config = model(2, ffn=mlp(1)) | {"vocab": 3, "tied": tied, "unembed_bias": True}
    named = tensors(config) | {
        "embed.W_E": np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]]),
        "unembed.b_U": np.array([0.0, 0.0, 10.0]),
    }
    if not tied:
        named["unembed.W_U"] = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    stages = trace(config, named, token_ids=[2, 1])
    close(stages["embed"], [[3, 3], [0, 2]], atol=0)
    expected = [[3, 6, 28], [0, 4, 16]] if tied else [[3, 6, 10], [0, 2, 10]]
    close(stages["logits"], expected, atol=0)


def test_the_final_norm_comes_before_the_readout() -> None:
    config = model(2, ffn=mlp(1), norm=norm("rmsnorm"))
    config |= {"vocab": 2, "tied": True, "final_norm": True}
    named = tensors(config) | {"embed.W_E": np.eye(2), "final_norm.weight": np.array([1.0, 10.0])}
    stages = trace(config, named, tensor=[[3, 4]])
    close(stages["final_norm.scale"], [[3.5355353]], atol=5e-7)
    close(stages["logits"], [[0.8485, 11.3137]], atol=5e-5)


def test_a_batch_is_its_elements() -> None:
    case = random_case(next(seed for seed in range(50) if is_plain_batch(seed)))
    whole = trace(case.config, case.weights, **case.inputs)
    (name, rows) = next(iter(case.inputs.items()))
    for element, own in enumerate(rows):
        alone = trace(case.config, case.weights, **{name: own})
        assert list(alone) == list(whole)
        assert all(np.array_equal(alone[stage], whole[stage][element]) for stage in whole)


def is_plain_batch(seed: int) -> bool:
    """The case's input is batched rows alone."""
    inputs = random_case(seed).inputs
    axes = {"tensor": 3, "token_ids": 2}
    return len(inputs) == 1 and all(axes[name] == rows.ndim for name, rows in inputs.items())
