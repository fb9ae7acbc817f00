"""RoPE by itself: the article's angles, and every rule of scaling beside the oracle's."""

import math

import numpy as np
import pytest

import runs
from compute import config_json, positions, rotation
from compute.config import PositionConfig, RopeScaling, block_config
from compute.rotation import Vectors
from oracle import positions as oracle

ARTICLE = np.array([12, 4])
FOUR_DEGREES = math.radians(4)
SCALINGS = [
    RopeScaling(),
    RopeScaling(kind="linear", factor=4.0),
    RopeScaling(kind="dynamic", factor=2.0, original_positions=16),
    RopeScaling(kind="yarn", factor=8.0, original_positions=64, attention_factor=1.2079),
    RopeScaling(kind="llama3", factor=8.0, original_positions=64),
]


def article(ids: np.ndarray = ARTICLE) -> rotation.Rotation:
    return rotation.of_pair(FOUR_DEGREES, ids, None, in_degrees=4.0)


def drawn(width: int) -> Vectors:
    rng = np.random.default_rng(width)
    return Vectors(rng.standard_normal(width), rng.standard_normal(width))


# The article: "query position 12, key position 4, query rotation 48°, key rotation 16°, relative
# distance 8, angle between 32°, q · k = cos(between) 0.85".


def test_the_article_turns_its_query_by_48_degrees_and_its_key_by_16() -> None:
    assert article().angles_degrees.tolist() == [[48.0], [16.0]]


def test_the_article_has_a_dot_product_of_the_cosine_of_32_degrees() -> None:
    # four products of cosines and sines, each rounded by 1.1e-16
    assert article().dots[0, 1] == pytest.approx(math.cos(math.radians(32)), abs=1e-15)
    assert round(float(article().dots[0, 1]), 7) == 0.8480481


def test_the_article_has_a_relative_distance_of_8() -> None:
    assert article().relative.tolist() == [[0, 8], [-8, 0]]


@pytest.mark.parametrize("shift", [1, 33, 100_000])
def test_a_shift_of_both_positions_turns_both_vectors_and_leaves_their_dot_product(
    shift: int,
) -> None:
    moved = article(ARTICLE + shift)
    # an angle of p · 0.07 radians is rounded by 1.1e-16 of it: 8e-13 at p = 100,012
    assert moved.dots[0, 1] == pytest.approx(float(article().dots[0, 1]), abs=4e-12)
    assert np.abs(moved.queries - article().queries).max() > 0.05


def test_ninety_positions_of_four_degrees_are_a_whole_turn() -> None:
    assert article().wavelengths[0] == pytest.approx(90.0, rel=1e-15)


def test_a_pair_that_does_not_turn_has_no_wavelength() -> None:
    still = rotation.of_pair(0.0, ARTICLE, None)
    assert math.isinf(still.wavelengths[0])
    assert still.dots.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_radians_are_told_in_degrees_too() -> None:
    found = rotation.of_pair(0.5, np.array([0, 3]), None)
    assert found.angles_radians.tolist() == [[0.0], [1.5]]
    assert found.angles_degrees[1, 0] == pytest.approx(1.5 * 180 / math.pi, rel=1e-15)


def test_a_pair_turns_vectors_of_any_content() -> None:
    vectors = Vectors(np.array([0.3, -1.2]), np.array([2.0, 0.7]))
    found = rotation.of_pair(FOUR_DEGREES, np.array([0, 5, 77]), vectors)
    for at, position in enumerate((0, 5, 77)):
        cos, sin = math.cos(position * FOUR_DEGREES), math.sin(position * FOUR_DEGREES)
        for turned, (x, y) in ((found.queries, vectors.query), (found.keys, vectors.key)):
            expected = [x * cos - y * sin, y * cos + x * sin]
            assert turned[at] == pytest.approx(expected, abs=1e-15)


# The whole spectrum


def spectrum(scaling: RopeScaling, pairing: str, width: int = 8, r: int = 6) -> rotation.Rotation:
    position = PositionConfig(
        kind="rope",
        theta=500.0,
        rotary_dim=r,
        pairing=pairing,  # type: ignore[arg-type]
        scaling=scaling,
    )
    return rotation.of_spectrum(position, width, np.array([0, 1, 12, 4, 40]), drawn(width))


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize("scaling", SCALINGS, ids=lambda scaling: scaling.kind)
def test_a_spectrum_turns_vectors_as_the_oracle_does(scaling: RopeScaling, pairing: str) -> None:
    found = spectrum(scaling, pairing)
    names = RopeScaling.__dataclass_fields__
    said = {
        "theta": 500.0,
        "rotary_dim": 6,
        "pairing": pairing,
        "scaling": {name: getattr(scaling, name) for name in names},
    }
    for vector, turned in ((drawn(8).query, found.queries), (drawn(8).key, found.keys)):
        for at, position in enumerate((0, 1, 12, 4, 40)):
            expected = oracle.rotate(vector, position, said, length=41)
            # a power and a product, rounded by 1e-16 each, times an angle of at most 40 radians
            assert turned[at] == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_dot_products_are_sums_over_pairs_and_over_what_does_not_turn(pairing: str) -> None:
    found, vectors = spectrum(SCALINGS[0], pairing), drawn(8)
    still = float(vectors.query[6:] @ vectors.key[6:])
    for i in range(5):
        for j in range(5):
            products = [float(found.queries[i, c] * found.keys[j, c]) for c in range(8)]
            assert found.dots[i, j] == pytest.approx(math.fsum(products), abs=1e-14)
            of_pairs = found.dots_of_pairs(i, j)
            assert of_pairs.shape == (3,)
            assert math.fsum(of_pairs) + still == pytest.approx(found.dots[i, j], abs=1e-14)


@pytest.mark.parametrize(
    ("pairing", "expected"),
    [("half", [(0, 3), (1, 4), (2, 5)]), ("interleaved", [(0, 1), (2, 3), (4, 5)])],
)
def test_a_pair_is_made_of_the_coordinates_its_pairing_says(
    pairing: str, expected: list[tuple[int, int]]
) -> None:
    assert rotation.pairs(6, pairing) == expected
    assert [oracle.paired(pairing, i, 6) for i in range(3)] == expected


def test_vectors_that_are_left_out_point_along_the_first_coordinate_of_each_pair() -> None:
    position = PositionConfig(kind="rope", theta=100.0, rotary_dim=6, pairing="interleaved")
    found = rotation.of_spectrum(position, 8, ARTICLE, None)
    expected = math.fsum(math.cos(8 * 100.0 ** (-2 * i / 6)) for i in range(3))
    assert found.dots[0, 1] == pytest.approx(expected, abs=1e-14)
    assert found.queries[:, 6:].tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_dynamic_scaling_looks_at_the_largest_position() -> None:
    scaling = RopeScaling(kind="dynamic", factor=2.0, original_positions=16)
    position = PositionConfig(kind="rope", theta=100.0, rotary_dim=8, scaling=scaling)
    near = rotation.of_spectrum(position, 8, np.array([0, 15]), None)
    far = rotation.of_spectrum(position, 8, np.array([0, 40]), None)
    assert near.turns.radians[1] == pytest.approx(100 ** (-2 / 8), rel=1e-15)
    assert far.turns.radians[1] < near.turns.radians[1]


def test_the_vectors_of_a_head_turn_as_they_do_inside_a_block() -> None:
    seen = 0
    for seed in range(150):
        case = runs.case_of(seed)
        own = block_config(config_json.from_json(case.config), 0)
        inputs = runs.inputs_of(case.inputs)
        if own.position.kind != "rope" or inputs.batch or own.attention.qk_norm != "none":
            continue
        states = runs.states(runs.run_of_case(case))
        q, q_rot = states["blocks.0.attn.q"][0], states["blocks.0.attn.q_rot"][0]
        ids, width = positions.ids_for(inputs), own.attention.d_head
        for at in range(inputs.positions):
            vectors = Vectors(q[at], q[at])
            found = rotation.of_spectrum(own.position, width, ids, vectors)
            assert found.queries[at].tobytes() == q_rot[at].tobytes()
        seen += 1
    assert seen >= 10
