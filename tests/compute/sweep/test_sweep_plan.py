"""What a sweep costs, counted before it is run."""

from compute import cost, selection
from compute.sweep import plans
from compute.types import Intervened, Selected
from sweeps import plan_of, run_of_blocks


def test_flops_are_those_of_the_blocks_that_are_run() -> None:
    run = run_of_blocks(0)
    scene = selection.scene_for(run.config, run.inputs)
    first = selection.resolve([Selected(name="blocks.0.resid_post")], scene)
    block = cost.flops(scene, first)
    patched = Intervened(stage="resid_pre", op="patch", source=0)
    over = ["block", "position"]
    # 4 positions from each of 3 blocks; the base run and the donor's
    assert plans.flops(plan_of(run, patched, over)) == (4 * (3 + 2 + 1) + 2 * 3) * block
    zeroed = Intervened(stage="resid_pre", op="zero", where={"block": (1,)})
    assert plans.flops(plan_of(run, zeroed, ["position"])) == (4 * 2 + 3) * block
    twice = Intervened(stage="resid_pre", op="zero", where={"block": (1, 2, 1)})
    assert plans.flops(plan_of(run, twice, over)) == (4 * (2 + 1 + 2) + 3) * block


def test_memory_counts_the_streams_that_are_kept() -> None:
    run = run_of_blocks(0)
    few = plan_of(run, Intervened(stage="attn.z", op="zero", where={"block": (0,)}), ["head"])
    many = plan_of(run, Intervened(stage="attn.z", op="zero"), ["block", "head"])
    rows = 4 * 6 * 8
    # two more blocks begin at two more streams; four more cells of 16 bytes
    more = plans.memory_bytes(many, "float64") - plans.memory_bytes(few, "float64")
    assert more == 2 * rows + 4 * 16
