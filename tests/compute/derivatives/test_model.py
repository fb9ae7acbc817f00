"""The Steps of a model: the stages of its run, in the order of computation, each from those
before it."""

import pytest

from compute import stages
from compute.derivatives.model import model
from differences import point_of, primary
from runs import case_of


@pytest.mark.parametrize("seed", range(150))
def test_steps_are_the_stages_of_a_run_in_its_order(seed: int) -> None:
    point, scene = point_of(case_of(seed))
    computed = list(point.run(primary(scene)))
    steps = [step.stage for step in model(scene)]
    assert [name for name in steps if stages.local_name(name) in stages.BY_NAME] == computed
    assert len(steps) == len(set(steps))


@pytest.mark.parametrize("seed", range(150))
def test_step_reads_what_stands_before_it_and_needs_what_is_kept(seed: int) -> None:
    _, scene = point_of(case_of(seed))
    before: set[str] = set()
    for step in model(scene):
        read = {name for name in step.reads if not name.endswith("rows")}
        assert read <= before, step
        before.add(step.stage)
        assert set(step.needs) <= set(primary(scene)), step
