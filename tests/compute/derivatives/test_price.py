"""What a derivative costs is known before: memory at least what is used, and not far beyond."""

import tracemalloc
from functools import partial

import numpy as np
import pytest

from compute import config_json, selection, weights
from compute.derivatives.asking import Pair
from compute.derivatives.jacobian import Walk, jacobian
from compute.derivatives.price import AT_ONCE, price
from compute.derivatives.pulling import Point
from compute.derivatives.routes import route
from compute.derivatives.rows import active
from compute.initial import by_stack, seeded
from compute.types import Inputs
from differences import point_of
from runs import case_of

OF_PYTHON = 2 << 20


PLAIN = next(s for s in range(99) if case_of(s).config["attention"]["kind"] != "none")


@pytest.mark.parametrize("seed", range(0, 60, 2))
def test_rows_are_at_least_one_and_at_most_those_asked(seed: int) -> None:
    _, scene = point_of(case_of(seed))
    way = route(scene, "blocks.0.resid_post", ["blocks.0.resid_pre"])
    for seeds in (1, 5):
        found = price(scene, way, [], seeds, "float64")
        assert 1 <= found.rows <= seeds
        assert found.flops >= found.run.flops
        assert found.bytes > found.run.bytes


def test_more_rows_cost_more_flops_and_no_more_bytes_beyond_what_is_held_at_once() -> None:
    _, scene = point_of(case_of(PLAIN))
    way = route(scene, "blocks.0.resid_post", ["blocks.0.resid_pre"])
    few, many = (price(scene, way, [], seeds, "float64") for seeds in (10, 10_000_000))
    assert many.flops > 1000 * few.flops
    assert many.bytes <= many.run.bytes + AT_ONCE


@pytest.mark.parametrize("kind", ["mlp", "gated", "moe"])
@pytest.mark.parametrize("positions", [8, 96])
def test_memory_is_at_least_what_is_used(kind: str, positions: int) -> None:
    seed = next(
        s
        for s in range(400)
        if case_of(s).config["ffn"]["kind"] == kind
        and case_of(s).config["attention"]["kind"] != "none"
        and not case_of(s).config["cross_attention"]
        and case_of(s).config["position"]["kind"] != "learned"
    )
    made = config_json.from_json(case_of(seed).config)
    rows = np.random.default_rng(0).standard_normal((positions, made.d_model))
    inputs = Inputs(tensor=rows)
    point = Point(
        made, weights.build(made, by_stack(made, partial(seeded, 0, "float64")), "float64"), inputs
    )
    scene = selection.scene_for(made, inputs)
    last = f"blocks.{made.n_layers - 1}.resid_post"
    pair = Pair(of=last, by="blocks.0.resid_pre", position=positions - 1, source=0)
    way = route(scene, pair.of, [pair.by])
    at = active(scene, way, pair.position, pair.source)
    told = price(scene, way, [], made.d_model, "float64", at)
    tracemalloc.start()
    try:
        jacobian(Walk(point, scene, point.run(way.needs), told.rows), pair)
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert used <= told.bytes + OF_PYTHON, (used, told.bytes)
    assert told.bytes <= 8 * used + OF_PYTHON, (used, told.bytes)
