"""Sweeps of a small model, and the whole runs that their cells are compared with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

import runs
from cases import small
from compute import selection, sweep
from compute.measures import Measure
from compute.sweep import Swept, plans
from compute.sweep.plans import Plan
from compute.trace import Run
from compute.types import Array, Intervened, Selected


def never() -> None:
    """The check of a sweep that nobody stops."""


def swept(planned: Plan, run: Run, donor: Run | None, check: Callable[[], None] = never) -> Swept:
    return sweep.run(planned, run.weights, run.inputs, donor and donor.inputs, check)


def kept(run: Run, names: Sequence[str], patches: Mapping[str, Any]) -> dict[str, Array]:
    """Whole stages of a run with patches."""
    scene = selection.scene_for(run.config, run.inputs)
    chosen = selection.resolve([Selected(name=name) for name in names], scene)
    return runs.states(replace(run, selection=chosen, patches=patches))


def literally(
    op: str, axes: Sequence[str], where: Mapping[str, tuple[int, ...]], donor: Array | None
) -> Callable[[Array], Array]:
    """A change of one slice, entry by entry."""

    def patch(x: Array) -> Array:
        letters = (*(["b"] if x.ndim > len(axes) else []), *axes)
        made = np.array(x)
        for entry in product(*(range(n) for n in x.shape)):
            if all(
                entry[at] in where.get(letter, (entry[at],)) for at, letter in enumerate(letters)
            ):
                old, number = x[entry], x.dtype.type(0.375)
                new = {"zero": 0.0, "scale": number * old, "add": old + number, "set": number}
                made[entry] = donor[entry] if donor is not None else new[op]
        return made

    return patch


def three_blocks(**given: object) -> dict[str, Any]:
    return small.model(6, attention=small.attention(2, 3), ffn=small.mlp(7), n_layers=3, **given)


def run_of_blocks(seed: int, **given: object) -> Run:
    config = three_blocks(**given)
    rows = np.random.default_rng(seed).standard_normal((4, 6))
    return runs.run_of(config, small.drawn(config, 0), {"tensor": rows})


def measured(stage: str, width: int = 6) -> Measure:
    return Measure(stage, 3, None, np.arange(1.0, width + 1))


def plan_of(
    run: Run,
    asked: Intervened,
    over: Sequence[str],
    *,
    stage: str = "blocks.2.resid_post",
    direct: bool = False,
) -> Plan:
    scene = selection.scene_for(run.config, run.inputs)
    return plans.plan(asked, over, scene, measured(stage), direct=direct)
