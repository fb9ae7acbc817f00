"""Jacobians: those of central differences; I where a branch is zeroed; post-norm's two factors."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import get_args

import numpy as np
import pytest

from compute import stages, weights
from compute.derivatives import jacobian as jacobians
from compute.derivatives.asking import Pair
from compute.derivatives.jacobian import Jacobian, Walk, factors, jacobian
from compute.derivatives.pulling import Point
from compute.derivatives.routes import route
from compute.selection import Scene
from compute.types import DType
from compute.weights import ModelWeights
from differences import NEAR, NOISE, Array, apart, moved, point_of, primary
from oracle.configs import Case
from runs import case_of

SEEDS = range(100)
BRANCHES = ("W_O", "b_O", "W_out", "b_out", "W_shared_out", "norm1_post.bias", "norm2_post.bias")


def walk_of(point: Point, scene: Scene, pair: Pair, rows: int = 1 << 20) -> Walk:
    way = route(scene, pair.of, [pair.by])
    return Walk(point, scene, point.run(way.needs), rows)


def made(case: Case, pair: Pair, rows: int = 1 << 20) -> Jacobian:
    point, scene = single(case)
    return jacobian(walk_of(point, scene, pair, rows), pair)


def single(case: Case) -> tuple[Point, Scene]:
    """A case's first row, without a batch axis."""
    point, _ = point_of(case)
    inputs = jacobians.row_of(point.inputs, 0)
    scene = point_of(case)[1]
    lengths = {x: length for x, length in scene.lengths.items() if x != "b"}
    return Point(point.config, point.weights, inputs), replace(scene, lengths=lengths)


def rows_of(scene: Scene, names: list[str]) -> list[str]:
    """The stages with a row of numbers at each position."""
    return [
        name
        for name in names
        if stages.find(name).axes[0] == "n"
        and len(stages.find(name).axes) == 2
        and not name.endswith("ffn.experts")
    ]


def drawn(seed: int) -> tuple[Point, Scene, Pair]:
    """A later stage of a case by an earlier one: of every other case two states of the stream at
    one position; of the others any two, mostly by a source before the position."""
    point, scene = single(case_of(seed))
    order = rows_of(scene, list(point.run(primary(scene))))
    if seed % 2:
        order = [name for name in order if "resid_" in name]
    rng = np.random.default_rng(seed)
    by, of = (order[at] for at in sorted(rng.choice(len(order), 2, replace=False)))
    source, position = (int(rng.integers(scene.lengths_of(name)["n"])) for name in (by, of))
    if stages.stack_of(by) == stages.stack_of(of):
        first, last = sorted([source, position])
        source, position = (first, first) if seed % 2 else (first, last)
    if seed % 10 == 0:
        source, position = 0, 0
    return point, scene, Pair(of=of, by=by, position=position, source=source)


@pytest.mark.parametrize("seed", SEEDS)
def test_jacobian_is_that_of_differences(seed: int) -> None:
    point, scene, pair = drawn(seed)
    found = jacobian(walk_of(point, scene, pair), pair).whole()
    size = NOISE * float(np.abs(point.run([pair.of])[pair.of]).max())
    shape = point.run([pair.by])[pair.by].shape
    for column in range(found.shape[1]):
        change = np.zeros(shape)
        change[pair.source, column] = 1.0

        def f(h: float, change: Array = change) -> Array:
            return np.asarray(moved(point, pair.of, pair.by, h * change)[pair.position])

        assert apart(found[:, column], f, max(size, float(np.abs(found).max()))) <= NEAR


def test_drawn_pairs_are_of_all_kinds() -> None:
    met: Counter[str] = Counter()
    for seed in SEEDS:
        point, scene, pair = drawn(seed)
        found = jacobian(walk_of(point, scene, pair), pair)
        met["other stages"] += pair.of.split(".")[0] != "blocks"
        met["same position" if pair.position == pair.source else "another"] += 1
        met["with identity" if found.identity else "without"] += 1
        met["nothing at all"] += not found.whole().any()
        met["of another block"] += stages.layer_of(pair.of) != stages.layer_of(pair.by)
        met["of another stack"] += stages.stack_of(pair.of) != stages.stack_of(pair.by)
    assert min(met.values()) >= 4, met


def zeroed(case: Case) -> Case:
    """Every branch writes nothing: what it is multiplied with last, and its biases, are 0."""
    silent = {name: np.zeros_like(x) for name, x in case.weights.items() if name.endswith(BRANCHES)}
    return replace(case, weights={**case.weights, **silent})


def through_blocks(scene: Scene) -> Pair:
    last = f"blocks.{scene.config.n_layers - 1}.resid_post"
    return Pair(of=last, by="blocks.0.resid_pre", position=0, source=0)


NOT_POST = [seed for seed in range(60) if case_of(seed).config["norm"].get("placement") != "post"]


@pytest.mark.parametrize("seed", NOT_POST)
def test_zeroed_branches_give_exactly_i(seed: int) -> None:
    case = zeroed(case_of(seed))
    for dtype in get_args(DType):
        point, scene = single(case)
        pair = through_blocks(scene)
        narrowed = Point(point.config, in_dtype(point, dtype), point.inputs)
        found = jacobian(walk_of(narrowed, scene, pair), pair)
        assert found.identity == 1
        assert found.branch.dtype == dtype
        assert not found.branch.any()
        assert np.array_equal(found.whole(), np.eye(scene.config.d_model))


def in_dtype(point: Point, dtype: DType) -> ModelWeights:
    return weights.build(point.config, point.weights._bench._source, dtype)


def test_zeroed_branches_are_met_in_every_placement() -> None:
    configs = [case_of(seed).config for seed in NOT_POST]
    assert {config["norm"].get("placement") for config in configs} >= {"pre", "sandwich", "output"}
    assert {config["topology"] for config in configs} == {"sequential", "parallel"}
    assert {config["n_layers"] for config in configs} == {1, 2, 3}
    assert any(config["cross_attention"] for config in configs)


POST = [seed for seed in range(60) if case_of(seed).config["norm"].get("placement") == "post"]


@pytest.mark.parametrize("seed", POST)
def test_post_norm_is_its_norm_times_i_and_the_branch(seed: int) -> None:
    for case, is_zeroed in ((case_of(seed), False), (zeroed(case_of(seed)), True)):
        point, scene = single(case)
        for pair in sublayers(scene):
            assert jacobians.why_whole(scene, pair) is None
            total = jacobians.sum_before(scene, pair.of)
            assert total is not None
            walk = walk_of(point, scene, pair)
            whole, both = jacobian(walk, pair), factors(walk, pair, total)
            assert (whole.identity, both.sum.identity) == (0, int(pair.position == pair.source))
            scale = np.abs(both.norm).max() * np.abs(both.sum.whole()).max()
            assert np.abs(both.norm @ both.sum.whole() - whole.whole()).max() <= 1e-13 * scale
            assert not (is_zeroed and both.sum.branch.any())


def sublayers(scene: Scene) -> list[Pair]:
    """Each sublayer of block 0: the state it leaves by the state it reads."""
    names = ("resid_pre", "resid_mid", "resid_cross", "resid_post")
    there = [f"blocks.0.{x}" for x in names if scene.absence(f"blocks.0.{x}") is None]
    last = scene.lengths["n"] - 1
    return [
        Pair(of=of, by=by, position=last, source=source)
        for by, of in pairwise(there)
        for source in {0, last}
    ]


def test_norms_jacobian_is_the_formula() -> None:
    """diag(gain) (I - 11^T/d - n n^T/d) / s, n and s the normalized row and its scale; RMSNorm
    without 11^T. Zhang and Sennrich 2019, appendix; Ba et al. 2016, equation 4."""
    seen = set()
    for seed in POST:
        point, scene = single(case_of(seed))
        pair = sublayers(scene)[0]
        total = jacobians.sum_before(scene, pair.of)
        assert total is not None
        found = factors(walk_of(point, scene, pair), pair, total).norm
        norm = "blocks.0.norm1" if total.endswith("attn_sum") else "blocks.0.norm2"
        kept = point.run([f"{norm}.scale", f"{norm}.normalized"])
        n, s = kept[f"{norm}.normalized"][pair.position], kept[f"{norm}.scale"][pair.position]
        d, kind = len(n), scene.config.norm.kind
        centring = np.full((d, d), 1 / d) if kind == "layernorm" else 0.0
        gain = scene.config.norm.gain_offset + case_of(seed).weights[f"{norm}.weight"]
        expected = gain[:, None] * (np.eye(d) - centring - np.outer(n, n) / d) / s
        assert np.allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
        seen.add(kind)
    assert seen == {"layernorm", "rmsnorm"}


@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_rows_walked_in_pieces_are_those_walked_at_once(seed: int) -> None:
    point, scene, pair = drawn(seed)
    at_once = jacobian(walk_of(point, scene, pair), pair).branch
    in_pieces = jacobian(walk_of(point, scene, pair, rows=2), pair).branch
    atol = 1e-13 * max(1.0, float(np.abs(at_once).max()))
    assert np.allclose(at_once, in_pieces, rtol=0, atol=atol)


def test_later_position_has_no_part_in_a_causal_state() -> None:
    seed = next(
        seed
        for seed in SEEDS
        if case_of(seed).config["attention"]["mask"] == "causal"
        and case_of(seed).config["attention"]["kind"] != "none"
        and single(case_of(seed))[1].lengths["n"] > 2
    )
    scene = single(case_of(seed))[1]
    pair = replace(through_blocks(scene), position=0, source=2)
    found = made(case_of(seed), pair)
    assert found.identity == 0
    assert not found.whole().any()


def test_state_by_itself_is_i() -> None:
    pair = Pair(of="blocks.0.resid_pre", by="blocks.0.resid_pre", position=0, source=0)
    found = made(case_of(0), pair)
    assert np.array_equal(found.whole(), np.eye(len(found.branch)))


@pytest.mark.parametrize(
    "seed", [seed for seed in range(40) if "b" in point_of(case_of(seed))[1].lengths]
)
def test_row_of_a_batch_is_run_as_it_is_in_the_batch(seed: int) -> None:
    batch, scene = point_of(case_of(seed))
    name = f"blocks.{scene.config.n_layers - 1}.resid_post"
    together = batch.run([name])[name]
    for at in range(scene.lengths["b"]):
        alone = Point(batch.config, batch.weights, jacobians.row_of(batch.inputs, at))
        found = alone.run([name])[name]
        assert np.allclose(found, together[at], rtol=0, atol=1e-12 * np.abs(together[at]).max())


def test_singular_values_are_the_largest_first_and_those_of_the_matrix() -> None:
    matrix = np.diag([1.0, 3.0, 2.0])[:, :2].astype(np.float32)
    found = jacobians.singular_values(matrix)
    assert found.dtype == np.float64
    assert found.tolist() == [3.0, 1.0]
