"""The order that is told against the one in which the equations really come to their stages."""

from dataclasses import replace

import numpy as np

import runs
from compute import selection, stages
from compute.driver import Patch
from compute.sizing.tracing import order
from compute.trace import trace
from compute.types import Array


def test_stages_are_computed_in_the_order_that_is_told() -> None:
    rng = np.random.default_rng(7)
    for seed in range(0, 500, 2):
        case = runs.case_of(seed)
        for select in (None, runs.every_stage(case), runs.random_selection(rng, case)):
            run = runs.run_of_case(case, select=select)
            made = [(m.wanted.name, m.wanted) for m in trace(run).made]
            told = order.made(run.selection, run.config)
            assert [(wanted.name, wanted) for wanted in told] == made, seed


def test_the_last_stage_is_where_the_run_stops() -> None:
    rng = np.random.default_rng(8)
    for seed in range(0, 500, 5):
        case = runs.case_of(seed)
        run = runs.run_of_case(case, select=runs.random_selection(rng, case))
        seen: list[str] = []
        whole = runs.run_of_case(case)
        every = list(trace(whole).whole)
        trace(replace(run, patches={x: seen_by(seen, x) for x in every if not derived(x)}))
        assert seen[-1] == order.last(run.selection, run.config), seed
        assert order.kept(run.selection, run.config) == [
            x for x in seen if x in selection.kept_stages(run.selection, run.config)
        ]


def derived(name: str) -> bool:
    return stages.find(name).derived


def seen_by(seen: list[str], name: str) -> Patch:
    """A patch that changes nothing and remembers that its stage was computed."""

    def patch(values: Array) -> Array:
        seen.append(name)
        return values

    return patch
