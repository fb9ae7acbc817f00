"""T5's buckets: by the exact definition, and by those of its code in torch's float32."""

import itertools

import numpy as np
import pytest

from cases import small
from compute.config import PositionConfig, position_config
from compute.positions import t5_buckets
from compute.types import Ints

FARTHEST = 300


def t5(buckets: int, max_distance: int, *, bidirectional: bool) -> PositionConfig:
    given = {"n_buckets": buckets, "max_distance": max_distance, "bidirectional": bidirectional}
    return position_config("t5_bias", 0, **given)


def of_keys(position: PositionConfig, offsets: Ints) -> list[int]:
    """The buckets of keys that stand at these offsets from one query."""
    ids = np.concatenate([[0], offsets])
    return [int(bucket) for bucket in t5_buckets(position, ids)[0, 1:]]


# The exact definition, in whole numbers: bucket E + j begins where (d/E)^L >= (M/E)^j, L = N - E.


def exact_bucket(distance: int, buckets: int, max_distance: int) -> int:
    E = buckets // 2
    if distance < E:
        return distance
    left, j = buckets - E, 0
    while (
        E + j + 1 < buckets and distance**left * E ** (j + 1) >= max_distance ** (j + 1) * E**left
    ):
        j += 1
    return E + j


def exact(offset: int, position: PositionConfig) -> int:
    buckets, farthest = position.n_buckets, position.max_distance
    if not position.bidirectional:
        return exact_bucket(max(-offset, 0), buckets, farthest)
    half = buckets // 2
    return (half if offset > 0 else 0) + exact_bucket(abs(offset), half, farthest)


SETTINGS = [(32, 128), (16, 64), (8, 20), (9, 128), (18, 128), (4, 5), (14, 37), (64, 256)]


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("buckets", "max_distance"), SETTINGS)
def test_buckets_follow_their_definition(
    buckets: int, max_distance: int, *, bidirectional: bool
) -> None:
    if bidirectional and buckets % 2:
        return  # both directions have as many
    position = t5(buckets, max_distance, bidirectional=bidirectional)
    offsets = np.arange(-FARTHEST, FARTHEST + 1)
    assert of_keys(position, offsets) == [exact(int(d), position) for d in offsets]


STARTS = {
    (32, 128, True): (*range(8), 8, 12, 16, 23, 32, 46, 64, 91),
    (32, 128, False): (
        *(*range(16), 16, 19, 21, 24, 27, 31, 35, 40),
        *(46, 52, 59, 67, 77, 87, 99, 113),
    ),
    (16, 64, True): (*range(4), 4, 8, 16, 32),
    (16, 64, False): (*range(8), 8, 11, 14, 18, 23, 30, 39, 50),
    (8, 20, True): (0, 1, 2, 7),
    (8, 20, False): (0, 1, 2, 3, 4, 6, 9, 14),
    (9, 128, False): (0, 1, 2, 3, 4, 8, 16, 32, 64),
    (18, 128, True): (0, 1, 2, 3, 4, 8, 16, 32, 64),
}
"""The first distance behind of each bucket from torch 2's float32, for distances up to 300."""


@pytest.mark.parametrize(("buckets", "max_distance", "bidirectional"), STARTS)
def test_buckets_begin_where_those_of_t5s_code_begin(
    buckets: int, max_distance: int, *, bidirectional: bool
) -> None:
    position = t5(buckets, max_distance, bidirectional=bidirectional)
    starts = STARTS[buckets, max_distance, bidirectional]
    lengths = [after - start for start, after in itertools.pairwise((*starts, FARTHEST + 1))]
    behind = [bucket for bucket, length in enumerate(lengths) for _ in range(length)]
    distances = np.arange(FARTHEST + 1)
    assert of_keys(position, -distances) == behind
    half = buckets // 2
    ahead = [0, *(half + b for b in behind[1:])] if bidirectional else [0] * (FARTHEST + 1)
    assert of_keys(position, distances) == ahead


def test_far_keys_share_the_last_bucket() -> None:
    far = np.array([-(2**40), -129, -128, 128, 129, 2**40])
    assert of_keys(t5(32, 128, bidirectional=True), far) == [15, 15, 15, 31, 31, 31]
    assert of_keys(t5(32, 128, bidirectional=False), far) == [31, 31, 31, 0, 0, 0]


def test_a_batch_has_the_buckets_of_each_row() -> None:
    rows = np.array([[0, 1, 2], [5, 100, 7]])
    position = t5(8, 20, bidirectional=True)
    together = t5_buckets(position, rows)
    assert together.shape == (2, 3, 3)
    assert [t5_buckets(position, row).tolist() for row in rows] == together.tolist()


def test_every_block_adds_the_same_table_to_its_scores_but_cross_attention_adds_none() -> None:
    kind = {"kind": "t5_bias", "n_buckets": 8, "max_distance": 20, "bidirectional": False}
    config = small.model(5, attention=small.attention(2, 3, scale=0.0), ffn=small.mlp(7))
    config |= {"position": kind, "n_layers": 2, "cross_attention": True}
    named = small.drawn(config, 0)
    rows = np.zeros((4, 5))
    made = small.stages_of(small.run(config, named, tensor=rows, memory={"tensor": rows}))
    buckets = t5_buckets(t5(8, 20, bidirectional=False), np.arange(4))
    expected = np.moveaxis(named["rel_bias.W_rel"][buckets], -1, 0)
    assert made["attn.scores"].tolist() == expected.tolist()
    assert made["blocks.1.attn.scores"].tolist() == expected.tolist()
    assert not made["cross.scores"].any()
