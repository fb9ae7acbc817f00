"""Rows that a walk leaves out are those of which nothing comes back."""

import numpy as np
import pytest

from compute.derivatives.asking import Pair
from compute.derivatives.jacobian import row_of
from compute.derivatives.pulling import Point, pull_back
from compute.derivatives.routes import route
from compute.derivatives.rows import active, cut, placed
from compute.selection import Scene, scene_for
from differences import Array, point_of
from runs import case_of


def single(seed: int) -> tuple[Point, Scene]:
    point, _ = point_of(case_of(seed))
    inputs = row_of(point.inputs, 0)
    return Point(point.config, point.weights, inputs), scene_for(point.config, inputs)


def through(scene: Scene, position: int, source: int) -> Pair:
    last = f"blocks.{scene.config.n_layers - 1}.resid_post"
    return Pair(of=last, by="blocks.0.resid_pre", position=position, source=source)


def by_all_rows(point: Point, scene: Scene, pair: Pair) -> Array:
    """The Jacobian's branch and identity, every row of every stage walked through."""
    way = route(scene, pair.of, [pair.by])
    d, n = scene.config.d_model, scene.lengths["n"]
    seeds = np.zeros((d, n, d))
    seeds[np.arange(d), pair.position, np.arange(d)] = 1.0
    found = pull_back(point, way, seeds, point.run(way.needs))
    return found[pair.by].total()[:, pair.source]


@pytest.mark.parametrize("seed", range(60))
def test_few_rows_give_what_all_give(seed: int) -> None:
    point, scene = single(seed)
    d, last = scene.config.d_model, scene.lengths["n"] - 1
    for position, source in ((last, last), (last, 0), (0, last), (last // 2, last // 2)):
        pair = through(scene, position, source)
        way = route(scene, pair.of, [pair.by])
        at = active(scene, way, position, source)
        expected = by_all_rows(point, scene, pair)
        if not at[pair.by]:
            assert not expected.any()
            continue
        assert at[pair.by] == range(source, source + 1)
        seeds = np.eye(d)[:, None]
        found = pull_back(point, way, seeds, point.run(way.needs), at)
        made = found[pair.by].total()[:, 0] if pair.by in found else np.zeros((d, d))
        assert np.allclose(made, expected, rtol=0, atol=1e-12 * max(1.0, np.abs(expected).max()))


def test_one_block_walks_through_one_row_but_for_keys_and_values() -> None:
    seed = next(s for s in range(99) if _is_plain(s))
    _, scene = single(seed)
    last = scene.lengths["n"] - 1
    way = route(scene, "blocks.0.resid_post", ["blocks.0.resid_pre"])
    at = active(scene, way, last, 0)
    assert max(map(len, at.values())) == 1
    assert at["blocks.0.attn.v"] == range(1)
    assert at["blocks.0.ffn_out"] == at["blocks.0.attn.scores"] == range(last, last + 1)
    assert at["blocks.0.attn.q"] == range(0)


def _is_plain(seed: int) -> bool:
    config = case_of(seed).config
    kinds = (config["attention"]["kind"], config["ffn"]["kind"])
    both = "none" not in kinds and not config["cross_attention"]
    return both and config["topology"] == "sequential" and single(seed)[1].lengths["n"] > 1


def test_values_move_from_rows_to_rows() -> None:
    x = np.arange(12.0).reshape(1, 4, 3)
    assert np.array_equal(cut(x, "resid_pre", range(1, 3)), x[:, 1:3])
    moved = placed(x[:, 2:], "resid_pre", range(2, 4), range(3))
    assert np.array_equal(moved, np.stack([0 * x[:, 0], 0 * x[:, 1], x[:, 2]], axis=1))
    assert not placed(x[:, :1], "resid_pre", range(1), range(2, 4)).any()
    assert placed(x, "resid_pre", range(4), range(4)) is x
