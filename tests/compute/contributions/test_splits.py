"""Every split of every sum: the parts are those of the reference, and they add up."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import asking
import runs
from asking import SPLITS
from compute import selection
from compute.contributions.answer import At, Part
from compute.contributions.contribute import at_rows
from compute.contributions.question import Asked, Question, resolve
from compute.contributions.seen import Seen, look
from compute.contributions.target import STATES
from compute.errors import QuestionError
from compute.trace import Run
from compute.types import Array, DType
from oracle import forward
from split_by_hand import ByHand

ROUNDING = 1e-12
"""Tens to hundreds of roundings of 1.1e-16, of numbers up to the largest part."""


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_parts_of_each_sum_add_up_to_it(first: int) -> None:
    for seed in range(first, first + 50):
        run = runs.run_of_case(runs.case_of(seed), select=[])
        rng = np.random.default_rng(seed)
        for by in SPLITS:
            of = rng.choice(sums(run))
            for at in asking.ask(run, of=str(of), by=by, positions=(0, -1), vectors=True):
                assert at.state is not None
                assert at.sum is not None
                assert at.sum.holds, (seed, by, of, at.sum)
                total = added(at.parts)
                near(total, at.state.vector, size_of(at))


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_in_float32_the_parts_add_up_as_far_as_it_knows(first: int) -> None:
    for seed in range(first, first + 20):
        run = runs.run_of_case(runs.case_of(seed), dtype="float32", select=[])
        for by in SPLITS:
            for at in asking.ask(run, by=by, positions=(0, -1)):
                assert at.sum is not None
                assert at.sum.holds, (seed, by, at.sum)
                assert at.sum.tolerance is not None
                assert at.state is not None
                largest = max(part.norm or 0.0 for part in at.parts)
                assert at.sum.tolerance <= 0.01 * (largest + at.state.norm)


def sums(run: Run) -> list[str]:
    """Every state and update of a run that is a sum."""
    scene = asking.scene_of(run)
    local = [*STATES, *(f"{s}{x}" for s in ("attn", "cross", "ffn") for x in ENDS)]
    names = [f"blocks.{at}.{x}" for at in range(run.config.n_layers) for x in local]
    if run.config.encoder is not None:
        blocks = range(run.config.encoder.n_layers)
        names += [f"encoder.blocks.{at}.{x}" for at in blocks for x in local]
    return [name for name in names if is_sum(name, scene)]


ENDS = ("_out", ".out_raw", "_sum")


def is_sum(name: str, scene: selection.Scene) -> bool:
    try:
        resolve(Question(of=name), scene)
    except QuestionError:
        return False
    return True


def added(parts: Sequence[Part]) -> Array:
    vectors = [part.vector for part in parts if part.vector is not None]
    assert len(vectors) == len(parts)
    return np.asarray(np.sum(vectors, axis=0))


def size_of(at: At) -> float:
    return max([part.norm or 0.0 for part in at.parts])


def near(found: Array | None, wanted: Array | None, size: float) -> None:
    assert found is not None
    assert wanted is not None
    largest = max(size, float(np.abs(wanted).max()), 1e-300)
    assert np.abs(found - wanted).max() <= ROUNDING * largest


def rows(seed: int) -> tuple[Run, list[tuple[int, ByHand]]]:
    """A case's answers at its last and first positions, beside the same by hand."""
    case = runs.case_of(seed)
    exact = forward.trace(case.config, case.weights, **case.inputs)
    run = runs.run_of_case(case, select=[])
    batch = run.inputs.batch
    ends = (run.inputs.positions - 1, 0)
    places = [(at, b) for b in (range(batch) if batch else [None]) for at in ends]
    return run, [(at, ByHand(case, exact, at, b)) for at, b in places]


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_each_part_is_the_one_made_by_hand(first: int) -> None:
    for seed in range(first, first + 20):
        run, by_hand = rows(seed)
        for by in SPLITS:
            found = asking.ask(run, by=by, positions=(-1, 0), vectors=True)
            for at, (position, hand) in zip(found, by_hand, strict=True):
                assert (at.position, at.batch) == (position, hand.batch)
                wanted = hand.parts(by)
                parts = {(part.id, part.source): part.vector for part in at.parts}
                assert parts.keys() == wanted.keys(), (seed, by)
                for key, vector in wanted.items():
                    near(parts[key], vector, size_of(at))


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_sources_of_a_head_add_up_to_the_head(first: int) -> None:
    for seed in range(first, first + 20):
        run = runs.run_of_case(runs.case_of(seed), select=[])
        by_head = asking.ask(run, by="head", positions=(-1,), vectors=True)
        by_source = asking.ask(run, by="source", positions=(-1,), vectors=True)
        for heads, sources in zip(by_head, by_source, strict=True):
            for head in heads.parts:
                own = [part for part in sources.parts if part.id == head.id]
                near(added(own), head.vector, size_of(heads))


def test_parts_are_as_many_as_was_said_before_the_run() -> None:
    for seed in range(60):
        run = runs.run_of_case(runs.case_of(seed), select=[])
        for by in SPLITS:
            resolved = resolve(Question(by=by), asking.scene_of(run))
            for at in asking.ask(run, by=by):
                assert resolved.division.count() == len(at.parts), (seed, by)


def test_a_sum_with_something_missing_does_not_hold() -> None:
    """A state that is off by a thousandth is no sum of its parts, in either dtype."""
    for seed in range(40):
        for dtype in DTYPES:
            run = runs.run_of_case(runs.case_of(seed), dtype=dtype, select=[])
            resolved = resolve(Question(by="head"), asking.scene_of(run))
            seen = next(looked(run, resolved).slabs(1))
            name = resolved.target.name
            off = 1.001 * seen.stages[name] + np.float64(1e-3) * np.abs(seen.stages[name]).max()
            (right,) = at_rows(resolved, seen)
            (wrong,) = at_rows(resolved, replace(seen, stages={**seen.stages, name: off}))
            assert right.sum is not None
            assert wrong.sum is not None
            assert (right.sum.holds, wrong.sum.holds) == (True, False), (seed, dtype)


DTYPES: tuple[DType, ...] = ("float64", "float32")


def looked(run: Run, resolved: Asked) -> Seen:
    return look(run.config, run.weights, run.inputs, resolved.rows, resolved.needed, lambda: None)


def test_overflow_is_said_and_not_judged() -> None:
    run = runs.run_of_case(runs.case_of(0), select=[])
    resolved = resolve(Question(by="head"), asking.scene_of(run))
    seen = next(looked(run, resolved).slabs(1))
    name = resolved.target.name
    (at,) = at_rows(resolved, replace(seen, stages={**seen.stages, name: seen[name] * np.inf}))
    assert at.sum is not None
    assert (at.sum.holds, at.sum.max_abs, at.sum.tolerance) == (None, None, None)
