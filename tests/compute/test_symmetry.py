"""What a block does to all its rows alike: permutations, shifts, mixtures, silent branches."""

import math

import numpy as np
import pytest

from cases import small
from compute.types import Selected

RNG = np.random.default_rng(7)
ROWS = RNG.standard_normal((5, 11))
ORDER = [3, 0, 4, 1, 2]
PLACES = {
    "sinusoidal": {"kind": "sinusoidal"},
    "learned": {"kind": "learned", "n_positions": 7},
    "rope": small.rope(2),
    "alibi": {"kind": "alibi", "alibi_rule": "bloom"},
}
NORMS = [
    small.norm(kind, placement=at) for kind in ("layernorm", "rmsnorm") for at in ("pre", "post")
]


def block(**given: object) -> small.Config:
    """Three heads over width 11, a gated ffn: everything the block has, and what is given."""
    heads = small.attention(3, 2, d_value=7, bias=small.biases(*"qkvo"))
    gated = small.mlp(13, kind="gated", bias={"in": True, "gate": True, "out": True})
    parts = {"attention": heads, "ffn": gated, "norm": small.norm("layernorm"), **given}
    return small.model(11, **parts)


def leaving(config: small.Config, rows: np.ndarray, **inputs: object) -> np.ndarray:
    return small.stages_of(small.run(config, small.drawn(config, 1), tensor=rows, **inputs))[
        "resid_post"
    ]


# Permutations. "Unmasked self-attention without positional information is
# permutation-equivariant."


@pytest.mark.parametrize("norm", [small.NONE, *NORMS])
def test_permuted_rows_leave_permuted(norm: small.Config) -> None:
    config = block(norm=norm)
    permuted = leaving(config, ROWS[ORDER])
    # the sums over keys are taken in another order: a few roundings of numbers of order ten
    small.close(permuted, leaving(config, ROWS)[ORDER], atol=1e-12)


def test_permuted_rows_leave_permuted_when_their_key_mask_is_permuted_too() -> None:
    config, mask = block(), np.array([True, False, True, True, False])
    permuted = leaving(config, ROWS[ORDER], key_mask=mask[ORDER])
    small.close(permuted, leaving(config, ROWS, key_mask=mask)[ORDER], atol=1e-12)


@pytest.mark.parametrize("kind", PLACES)
def test_positions_tell_permuted_rows_apart(kind: str) -> None:
    config = block(position=PLACES[kind])
    apart = np.abs(leaving(config, ROWS[ORDER]) - leaving(config, ROWS)[ORDER])
    assert apart.max() > 1e-3


@pytest.mark.parametrize("kind", PLACES)
def test_positions_that_move_with_their_rows_leave_permuted(kind: str) -> None:
    config, ids = block(position=PLACES[kind]), np.arange(5)
    permuted = leaving(config, ROWS[ORDER], position_ids=ids[ORDER])
    small.close(permuted, leaving(config, ROWS, position_ids=ids)[ORDER], atol=1e-12)


@pytest.mark.parametrize("given", [{"mask": "causal"}, {"window": 2}])
def test_a_causal_mask_or_a_window_tells_permuted_rows_apart(given: dict[str, object]) -> None:
    config = block()
    config["attention"] |= given
    apart = np.abs(leaving(config, ROWS[ORDER]) - leaving(config, ROWS)[ORDER])
    assert apart.max() > 1e-3


# RoPE: "keep the underlying query/key content fixed and shift both positions equally: their
# dot product is unchanged".


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize("width", [2, 4, 6])
@pytest.mark.parametrize("shift", [1, 7, 1000])
def test_dot_products_do_not_change_when_all_positions_shift(
    pairing: str, width: int, shift: int
) -> None:
    heads = small.attention(4, 6, n_kv_heads=2)
    config = small.model(11, attention=heads, position=small.rope(width, pairing=pairing))
    drawn, ids = small.drawn(config, 3), np.array([0, 12, 4, 13, 5])
    one, shifted = (
        small.stages_of(small.run(config, drawn, select=small.DOTS, tensor=ROWS, position_ids=at))
        for at in (ids, ids + shift)
    )
    # an angle of p radians is rounded by 1.1e-16 p: 1e-13 at the largest p
    small.close(shifted["attn.dots"], one["attn.dots"], atol=1e-12)
    assert np.abs(shifted["attn.q_rot"] - one["attn.q_rot"]).max() > 1e-3


FOUR_DEGREES = 205.1754
"""theta of a head of width 4 whose second pair turns by theta^(-1/2) = 4 degrees a position."""


def turned(pairing: str, unit: int, ids: list[int]) -> dict[str, np.ndarray]:
    """A query and a key that are both the unit vector `unit`, at the positions `ids`."""
    heads = small.attention(1, 4)
    config = small.model(
        4, attention=heads, position=small.rope(4, theta=FOUR_DEGREES, pairing=pairing)
    )
    eye = [np.eye(4)]
    rows = np.eye(4)[[unit, unit]]
    given = {"attn.W_Q": eye, "attn.W_K": eye}
    return small.block(config, given, select=small.DOTS, tensor=rows, position_ids=ids)


@pytest.mark.parametrize(("pairing", "first", "second"), [("half", 1, 3), ("interleaved", 2, 3)])
def test_four_degrees_a_position_give_the_articles_angles(
    pairing: str, first: int, second: int
) -> None:
    stages = turned(pairing, first, [12, 4])
    rotated = {"query": stages["attn.q_rot"][0, 0], "key": stages["attn.k_rot"][0, 1]}
    degrees = {name: math.degrees(math.atan2(x[second], x[first])) for name, x in rotated.items()}
    # theta is printed to seven digits: 48 degrees are off by 48 · 5e-5 / (2 · 205)
    assert degrees["query"] == pytest.approx(48.0, abs=1e-5)
    assert degrees["key"] == pytest.approx(16.0, abs=1e-5)
    assert degrees["query"] - degrees["key"] == pytest.approx(32.0, abs=1e-5)
    dot = stages["attn.dots"][0, 0, 1]
    assert dot == pytest.approx(0.848048, abs=5e-7)
    assert turned(pairing, first, [13, 5])["attn.dots"][0, 0, 1] == pytest.approx(dot, abs=1e-12)
    assert turned(pairing, first, [12, 12])["attn.dots"][0, 0, 1] == pytest.approx(1.0, abs=1e-12)
    # 45 apart is half a turn
    assert turned(pairing, first, [45, 0])["attn.dots"][0, 0, 1] == pytest.approx(-1, abs=1e-9)


@pytest.mark.parametrize(("pairing", "unit"), [("half", 0), ("interleaved", 0)])
def test_the_first_pair_turns_by_one_radian_whatever_theta_is(pairing: str, unit: int) -> None:
    dot = turned(pairing, unit, [12, 4])["attn.dots"][0, 0, 1]
    assert dot == pytest.approx(math.cos(8), abs=1e-12)


# Branches that say nothing, and mixtures.


@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])
def test_branches_that_write_nothing_leave_the_stream_as_it_was(norm: str) -> None:
    config = block(norm=small.norm(norm), position=small.rope(2))
    named = small.drawn(config, 5)
    for name in ("attn.W_O", "attn.b_O", "ffn.W_out", "ffn.b_out"):
        named[f"blocks.0.{name}"] = np.zeros_like(named[f"blocks.0.{name}"])
    stages = small.stages_of(small.run(config, named, tensor=ROWS))
    assert np.abs(stages["ffn.hidden"]).max() > 0.1
    assert stages["resid_post"].tobytes() == ROWS.tobytes()


@pytest.mark.parametrize("mask", ["causal", "full"])
@pytest.mark.parametrize("g", [1, 2, 4])
def test_a_mixture_is_a_convex_combination_of_values(mask: str, g: int) -> None:
    heads = small.attention(4, 3, n_kv_heads=g, mask=mask)
    config = small.model(11, attention=heads)
    stages = small.stages_of(small.run(config, small.drawn(config, 2), tensor=ROWS))
    A, V, H = stages["attn.pattern"], stages["attn.v"], stages["attn.z"]
    assert (A >= 0).all()
    small.close(A.sum(axis=-1), np.ones((4, 5)), atol=1e-15)  # five roundings of at most 1
    for head in range(4):
        for row in range(5):
            values = V[head // (4 // g)][: row + 1 if mask == "causal" else 5]
            assert (H[head, row] >= values.min(axis=0) - 1e-14).all()
            assert (H[head, row] <= values.max(axis=0) + 1e-14).all()


def test_later_rows_change_nothing_before_them_under_a_causal_mask() -> None:
    config = block(attention=small.attention(3, 2, mask="causal"))
    changed = ROWS * np.where(np.arange(5) == 3, -1.0, 1.0)[:, None]
    one, other = leaving(config, ROWS), leaving(config, changed)
    assert one[:3].tobytes() == other[:3].tobytes()
    assert np.abs(one[3:] - other[3:]).max(axis=1).min() > 1e-3


def test_the_ffn_and_the_norms_look_at_one_row_at_a_time() -> None:
    config = small.model(11, ffn=small.mlp(13), norm=small.norm("layernorm"))
    whole = leaving(config, ROWS)
    for row in range(5):
        small.close(leaving(config, ROWS[[row]])[0], whole[row], atol=1e-14)


def test_one_head_kept_is_the_same_head_of_all() -> None:
    config = block()
    select = [Selected(name="attn.pattern", where={"head": (2,)})]
    drawn = small.drawn(config, 1)
    one = small.stages_of(small.run(config, drawn, select=select, tensor=ROWS))["attn.pattern"]
    every = small.stages_of(small.run(config, drawn, tensor=ROWS))["attn.pattern"]
    assert one.tobytes() == every[[2]].tobytes()
