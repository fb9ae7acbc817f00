"""Sweeps: each cell is a whole run with the same change, bit for bit, at the price of a part."""

from itertools import product

import numpy as np
import pytest

import runs
from compute import selection, stages
from compute.measures import Measure
from compute.selection import Scene
from compute.sweep import plans
from compute.trace import Run
from compute.types import AXES, Intervened
from oracle.configs import Case
from sweeps import kept, literally, plan_of, run_of_blocks, swept

# Cells against whole runs


@pytest.mark.parametrize("seed", range(60))
def test_each_cell_has_the_bits_of_a_whole_run_with_the_same_change(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = runs.case_of(seed)
    run, donor = runs.run_of_case(case), runs.run_of_case(other(case))
    scene = selection.scene_for(run.config, run.inputs)
    stage = drawn_stage(rng, scene)
    measure = drawn_measure(rng, scene)
    op = ("patch", "zero", "scale", "add", "set")[seed % 5]
    asked = Intervened(
        stage=stage.name if not stages.stack_of(stage.full) else f"encoder.{stage.name}",
        op=op,  # type: ignore[arg-type]
        value=0.375 if op in ("scale", "add", "set") else None,
        source=0 if op == "patch" else None,
    )
    over = drawn_axes(rng, scene, stage)
    planned = plans.plan(asked, over, scene, measure, direct=False)
    found = swept(planned, run, donor if op == "patch" else None)
    theirs = kept(donor, list(planned.changes), {}) if op == "patch" else {}
    assert found.values.shape == planned.grid.shape
    for at, cell in enumerate(planned.grid.cells()):
        patches = {
            name: literally(op, stages.find(name).axes, cell.where, theirs.get(name))
            for name in cell.names
        }
        whole = kept(run, [measure.stage], patches)[measure.stage]
        assert bits(found.values.reshape(-1)[at]) == bits(measure.of(whole))
    assert bits(found.base) == bits(measure.of(kept(run, [measure.stage], {})[measure.stage]))


class Drawn:
    """A stage of a scene by one of its full names."""

    def __init__(self, full: str) -> None:
        self.full = full
        self.name = stages.local_name(full)
        self.stage = stages.find(full)


def other(case: Case) -> Case:
    """The same case with another input of the same shape."""
    rng = np.random.default_rng(case.seed + 1000)
    inputs = dict(case.inputs)
    if "tensor" in inputs:
        inputs["tensor"] = rng.standard_normal(inputs["tensor"].shape)
    else:
        inputs["token_ids"] = rng.integers(case.config["vocab"], size=inputs["token_ids"].shape)
    return Case(seed=case.seed, config=case.config, weights=case.weights, inputs=inputs)


def drawn_stage(rng: np.random.Generator, scene: Scene) -> Drawn:
    here = [
        name
        for name, stage in stages.in_order(scene.config)
        if not stage.derived
        and scene.absence(name) is None
        and stage.name not in ("ffn.experts", "attn.sink")
    ]
    return Drawn(str(rng.choice(here)))


def drawn_measure(rng: np.random.Generator, scene: Scene) -> Measure:
    config = scene.config
    there = [f"blocks.{layer}.resid_post" for layer in range(config.n_layers)]
    there += ["logits", "logits", "blocks.0.attn_out", "blocks.0.ffn_out"]
    here = [name for name in there if scene.absence(name) is None]
    stage = str(rng.choice(here))
    width = scene.lengths_of(stage)[stages.find(stage).axes[-1]]
    batch = scene.lengths.get("b")
    return Measure(
        stage,
        int(rng.integers(scene.lengths["n"])),
        None if batch is None else int(rng.integers(batch)),
        rng.standard_normal(width),
    )


def drawn_axes(rng: np.random.Generator, scene: Scene, drawn: Drawn) -> list[str]:
    words = [AXES[x] for x in stages.axes_of(drawn.stage, "b" in scene.lengths) if x != "1"]
    known = (["block"] if drawn.stage.level == "block" else []) + words
    count = int(rng.integers(1, min(2, len(known)) + 1))
    return [str(word) for word in rng.choice(known, count, replace=False)]


def bits(number: float) -> bytes:
    return np.float64(number).tobytes()


# What is shared


class Counted:
    """A check that counts how often it is called: before each stage, and before each cell."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1


def test_a_cell_computes_from_its_block_to_the_stage_that_is_measured_and_no_more() -> None:
    run, donor = run_of_blocks(0), run_of_blocks(1)
    of_a_block = len(stages_computed(run)) // 3
    planned = plan_of(run, Intervened(stage="attn.z", op="patch", source=0), ["block", "head"])
    counted = Counted()
    found = swept(planned, run, donor, counted)
    runs_of_cells = 2 * (3 + 2 + 1) * of_a_block  # two heads; from blocks 0, 1 and 2
    # and the base run and the donor's, and a check before each of the 6 cells
    assert counted.calls == runs_of_cells + 2 * 3 * of_a_block + 6
    assert found.values.shape == (3, 2)


def stages_computed(run: Run) -> list[str]:
    """The stages of the run in full."""
    return [name for name in runs.states(run) if not stages.find(name).derived]


def test_cells_whose_change_comes_after_the_measure_are_not_run() -> None:
    run = run_of_blocks(0)
    asked = Intervened(stage="ffn_out", op="zero")
    planned = plan_of(run, asked, ["block"], stage="blocks.0.resid_post")
    counted = Counted()
    found = swept(planned, run, None, counted)
    of_a_block = len(stages_computed(run)) // 3
    assert counted.calls == 2 * of_a_block + 3
    assert found.values[0] != found.base
    assert found.values[1:].tolist() == [found.base] * 2


def test_a_check_that_raises_stops_the_sweep_between_two_stages() -> None:
    run = run_of_blocks(0)
    counted = Counted()

    def stop() -> None:
        counted()
        if counted.calls == 50:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        swept(
            plan_of(run, Intervened(stage="attn.z", op="zero"), ["block", "head"]), run, None, stop
        )
    assert counted.calls == 50


# Direct effects


def test_direct_effect_of_a_head_is_what_it_wrote_along_the_direction() -> None:
    run = run_of_blocks(0)
    planned = plan_of(run, Intervened(stage="attn.z", op="zero"), ["block", "head"], direct=True)
    found = swept(planned, run, None)
    states = runs.states(run)
    direction = np.arange(1.0, 7.0)
    for block, head in product(range(3), range(2)):
        wrote = states[f"blocks.{block}.attn.head_out"][head, 3] @ direction
        # a few additions of numbers of order ten, in another order
        np.testing.assert_allclose(found.base - found.values[block, head], wrote, atol=1e-13)


def test_direct_and_total_effects_differ_but_in_the_last_update() -> None:
    run, donor = run_of_blocks(0), run_of_blocks(1)
    asked = Intervened(stage="ffn_out", op="patch", source=0)
    total = swept(plan_of(run, asked, ["block", "position"]), run, donor).values
    direct = swept(plan_of(run, asked, ["block", "position"], direct=True), run, donor).values
    np.testing.assert_array_equal(total[2], direct[2])
    assert (total[0] != direct[0]).all()
