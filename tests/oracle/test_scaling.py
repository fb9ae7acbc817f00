"""The reference's frequencies and buckets against numbers that are not its own: those of
transformers 5.24, whose float32 leaves six digits."""

import math

import numpy as np
import pytest

from oracle import positions, scaling

LLAMA3 = {
    "kind": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_positions": 8192,
}
YARN = {
    "kind": "yarn",
    "factor": 4.0,
    "original_positions": 64,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "attention_factor": 1.138629436111989,
}
DYNAMIC = {"kind": "dynamic", "factor": 4.0, "original_positions": 16}


def rope(width: int, theta: float, given: dict[str, object]) -> dict[str, object]:
    return {"rotary_dim": width, "theta": theta, "pairing": "half", "scaling": given}


@pytest.mark.parametrize(
    ("given", "width", "theta", "length", "expected"),
    [
        ({"kind": "none"}, 8, 1e4, 999, [1, 0.1, 0.01, 0.001]),
        ({"kind": "linear", "factor": 4.0}, 8, 1e4, 999, [0.25, 0.025, 0.0025, 0.00025]),
        (DYNAMIC, 8, 1e4, 40, [1, 0.0522757955, 0.00273275888, 0.000142857141]),
        (DYNAMIC, 8, 1e4, 10, [1, 0.1, 0.01, 0.001]),
        (DYNAMIC, 8, 1e4, 16, [1, 0.1, 0.01, 0.001]),
        (YARN, 8, 1e4, 999, [1, 0.0625, 0.0025, 0.00025]),
        (
            YARN | {"original_positions": 256},
            16,
            1e4,
            1,
            [1, 0.25693506, 0.0625, 0.0138349654, 0.0025, 0.000790569466, 0.00025, 7.90569421e-05],
        ),
        (
            YARN | {"factor": 8.0, "original_positions": 4096, "beta_fast": 16.0, "beta_slow": 2.0},
            16,
            5e5,
            1,
            [
                *(1, 0.193922758, 0.0376060307, 0.0041021239),
                *(0.000176776681, 3.42810235e-05, 6.64786967e-06, 1.28917316e-06),
            ],
        ),
        (
            LLAMA3,
            16,
            5e5,
            1,
            [
                *(1, 0.193922758, 0.0376060307, 0.00729266508),
                *(0.000524846022, 3.42810235e-05, 6.64786967e-06, 1.28917316e-06),
            ],
        ),
        (
            LLAMA3 | {"factor": 4.0, "original_positions": 64},
            16,
            1e4,
            1,
            [
                *(1, 0.254647911, 0.0254647899, 0.00790569465),
                *(0.0025, 0.000790569466, 0.00025, 7.90569421e-05),
            ],
        ),
    ],
    ids=lambda value: value.get("kind") if isinstance(value, dict) else None,
)
def test_frequencies_are_those_of_transformers(
    given: dict[str, object], width: int, theta: float, length: int, expected: list[float]
) -> None:
    found = scaling.frequencies(rope(width, theta, given), length)
    np.testing.assert_allclose(found, expected, rtol=2e-6)


def test_yarn_keeps_what_turns_often_and_slows_by_the_factor_what_hardly_turns() -> None:
    found = scaling.frequencies(rope(64, 1e4, YARN | {"original_positions": 4096}), 1)
    plain = scaling.plain(64, 1e4)
    assert found[0] == plain[0]
    assert found[-1] == pytest.approx(plain[-1] / 4, rel=1e-15)
    ratios = [new / old for new, old in zip(found, plain, strict=True)]
    assert ratios == sorted(ratios, reverse=True)


def test_yarn_multiplies_what_it_turns_by_its_attention_factor() -> None:
    x = np.array([3.0, 4.0, 0.0, 0.0, 7.0])
    turned = positions.rotate(x, 5, rope(4, 1e4, YARN))
    assert np.linalg.norm(turned[:4]) == pytest.approx(5 * YARN["attention_factor"], rel=1e-15)
    assert turned[4] == 7.0  # what does not turn is left alone


def test_no_other_scaling_changes_a_length() -> None:
    x = np.array([3.0, 4.0, 1.0, 2.0])
    for given in ({"kind": "linear", "factor": 3.0}, DYNAMIC, LLAMA3):
        turned = positions.rotate(x, 5, rope(4, 1e4, given), 40)
        assert np.linalg.norm(turned) == pytest.approx(math.sqrt(30), rel=1e-15)


T5 = {"n_buckets": 32, "max_distance": 128}


def test_t5_buckets_of_both_directions_are_those_of_transformers() -> None:
    table = dict(
        zip(
            (-200, -128, -127, -91, -64, -20, -9, -8, -7, -1, 0, 1, 7, 8, 9, 20, 64, 127, 128),
            (15, 15, 15, 15, 14, 10, 8, 8, 7, 1, 0, 17, 23, 24, 24, 26, 30, 31, 31),
            strict=True,
        )
    )
    found = {d: positions.t5_bucket(d, T5 | {"bidirectional": True}) for d in table}
    assert found == table


def test_t5_buckets_of_one_direction_are_those_of_transformers() -> None:
    table = dict(
        zip(
            (-200, -128, -127, -113, -64, -20, -17, -16, -15, -1, 0, 1, 7, 128),
            (31, 31, 31, 31, 26, 17, 16, 16, 15, 1, 0, 0, 0, 0),
            strict=True,
        )
    )
    found = {d: positions.t5_bucket(d, T5 | {"bidirectional": False}) for d in table}
    assert found == table


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("buckets", "farthest"), [(8, 16), (16, 64), (32, 128), (14, 37)])
def test_every_t5_bucket_is_used_and_they_grow_with_distance(
    buckets: int, farthest: int, *, bidirectional: bool
) -> None:
    given = {"n_buckets": buckets, "max_distance": farthest, "bidirectional": bidirectional}
    behind = [positions.t5_bucket(-d, given) for d in range(3 * farthest)]
    assert behind == sorted(behind)
    ahead = {positions.t5_bucket(d, given) for d in range(1, 3 * farthest)}
    assert behind[0] == 0
    if bidirectional:
        assert set(behind) == set(range(buckets // 2))
        assert ahead == {buckets // 2 + b for b in range(1, buckets // 2)}
    else:
        assert set(behind) == set(range(buckets))
        assert ahead == {0}
