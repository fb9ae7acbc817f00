"""What a split holds in memory: what is shown, not what could be made of the run."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import asking
import runs
from asking import SPLITS
from cases import small
from compute import derived
from compute.contributions import cost
from compute.contributions.contribute import at_rows, contributions
from compute.contributions.question import Question, resolve
from compute.contributions.readout import Direction
from compute.contributions.seen import look
from compute.trace import Run


class Peak:
    """Bytes that were held at once inside of the block."""

    bytes = 0


@contextmanager
def measured() -> Iterator[Peak]:
    peak = Peak()
    tracemalloc.start()
    try:
        yield peak
        peak.bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def never() -> None:
    """Nobody stops it."""


@pytest.fixture(scope="module")
def wide() -> Run:
    """One block of GPT-2's width on 1,024 rows, its ffn left out."""
    config = small.model(768, attention=small.attention(12, 64, bias=small.biases(*"vo")))
    weights = small.drawn(config, 0)
    rows = np.random.default_rng(1).normal(size=(1024, 768))
    return small.run(config, weights, dtype="float32", select=[], tensor=rows)


def test_heads_of_one_position_take_at_most_ten_times_what_is_returned(wide: Run) -> None:
    question = Question(of="blocks.0.attn_out", by="head", vectors=True)
    asked = resolve(question, asking.scene_of(wide))
    seen = look(wide.config, wide.weights, wide.inputs, asked.rows, asked.needed, never)
    seen.weights.blocks[0]  # packed before, as the run left them
    with measured() as peak:
        (at,) = at_rows(asked, next(seen.slabs(1)))
    returned = sum(part.vector.nbytes for part in at.parts if part.vector is not None)
    assert returned == 25 * 768 * 8  # 12 heads, 12 times b_V, b_O; in float64
    assert peak.bytes <= 10 * returned


def test_sources_of_one_position_are_made_a_few_at_a_time(wide: Run) -> None:
    question = Question(of="blocks.0.attn_out", by="source", top_k=5)
    asked = resolve(question, asking.scene_of(wide))
    seen = look(wide.config, wide.weights, wide.inputs, asked.rows, asked.needed, never)
    all_parts = 12 * 1024 * 768 * 8
    with measured() as peak:
        (at,) = at_rows(asked, next(seen.slabs(1)))
    assert [part.count for part in at.parts] == [1] * 5 + [12 * 1024 + 13 - 5]
    assert peak.bytes <= all_parts / 4


def test_rows_are_all_that_is_kept_of_a_run(wide: Run) -> None:
    asked = resolve(Question(by="head"), asking.scene_of(wide))
    seen = look(wide.config, wide.weights, wide.inputs, asked.rows, asked.needed, never)
    assert {name: values.shape for name, values in seen.stages.items()} == {
        "blocks.0.attn.z": (1, 12, 64),
        "blocks.0.resid_post": (1, 768),
    }
    assert all(values.base is None for values in seen.stages.values())


@pytest.mark.parametrize("by", SPLITS)
def test_memory_stays_within_the_estimate(by: str) -> None:
    for seed in range(12):
        run = runs.run_of_case(runs.case_of(seed), select=[])
        places = tuple(range(run.inputs.positions))
        vector = np.ones(run.config.d_model)
        direction = Direction(vector=vector)
        question = Question(by=by, positions=places, vectors=True, direction=direction)  # type: ignore[arg-type]
        asked = resolve(question, asking.scene_of(run))
        estimate = cost.price(asked, "float64")
        with measured() as peak:
            found = list(contributions(asked, run.weights, run.inputs, never))
        assert peak.bytes <= estimate.bytes
        shown = sum(
            part.vector.size for at in found for part in at.parts if part.vector is not None
        )
        assert shown <= estimate.parts["vectors"]
        assert estimate.flops > 0


def test_two_heads_of_a_trace_take_at_most_ten_times_what_is_returned(wide: Run) -> None:
    w = wide.weights.blocks[0].attention
    H = np.random.default_rng(2).normal(size=(12, 1024, 64)).astype(np.float32)
    with measured() as peak:
        found = derived.head_out((H,), w, {"h": (3, 7), "n": (5,)})
    assert found.nbytes == 2 * 768 * 4
    assert peak.bytes <= 10 * found.nbytes
