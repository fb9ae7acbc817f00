"""Runs with interventions, and the cases that they are tried on."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import runs
from compute import config_json, interventions, selection, stages
from compute.selection import Scene
from compute.trace import trace
from compute.types import AXES, DType, Intervened
from oracle.configs import Case


def scene_of(case: Case) -> Scene:
    inputs = runs.inputs_of(case.inputs)
    return selection.scene_for(config_json.from_json(case.config), inputs)


def states(
    case: Case,
    *asked: Intervened,
    donors: Mapping[int, Case] | None = None,
    dtype: DType = "float64",
) -> dict[str, np.ndarray]:
    """Every stage of a run with interventions."""
    others = donors or {}
    scene = scene_of(case)
    changes = interventions.resolve(asked, scene)
    interventions.check_donors(
        changes, scene, {at: scene_of(other) for at, other in others.items()}
    )
    kept = {
        at: trace(replace(runs.run_of_case(others[at], dtype=dtype), also=names)).also
        for at, names in interventions.needed(changes).items()
    }
    patches = interventions.patches(changes, kept)
    return runs.states(runs.run_of_case(case, dtype=dtype, patches=patches))


def changeable(case: Case) -> Iterator[tuple[str, stages.Stage]]:
    """The stages of a case that interventions may change."""
    scene = scene_of(case)
    for name, stage in stages.in_order(scene.config):
        if not stage.derived and stage.name != "attn.sink" and scene.absence(name) is None:
            yield name, stage


def lengths(case: Case, name: str) -> dict[str, int]:
    """Axis word -> length of a stage, as the run has it."""
    stage, has = stages.find(name), scene_of(case).lengths_of(name)
    return {AXES[letter]: has[letter] for letter in stages.axes_of(stage, "b" in has)}


def random_where(
    rng: np.random.Generator, has: Mapping[str, int]
) -> tuple[dict[str, tuple[int, ...]], tuple[Any, ...]]:
    """Some indices of some axes, from either end, and the same as an index of the whole."""
    where: dict[str, tuple[int, ...]] = {}
    index = []
    for word, length in has.items():
        chosen = np.arange(length)
        if word != "1" and rng.random() < 0.5:
            chosen = rng.permutation(length)[: rng.integers(1, length + 1)]
            where[word] = tuple(int(i) - length * int(rng.integers(2)) for i in chosen)
        index.append(chosen)
    return where, np.ix_(*index)


def cases_with(stage: str, count: int = 30) -> list[Case]:
    """The first cases whose first block has a stage."""
    found = []
    for seed in range(1000):
        case = runs.case_of(seed)
        if scene_of(case).absence(f"blocks.0.{stage}") is None:
            found.append(case)
        if len(found) == count:
            break
    return found


def rows_case(rows: np.ndarray) -> Case:
    """Case 0 of a width, with other rows to read."""
    base = next(runs.case_of(s) for s in range(200) if plain(runs.case_of(s)))
    d = base.config["d_model"]
    return replace(base, inputs={"tensor": np.resize(rows, (*rows.shape[:-1], d))})


def plain(case: Case) -> bool:
    return (
        "tensor" in case.inputs
        and case.config["position"]["kind"] == "none"
        and case.config["attention"]["kind"] != "none"
        and not case.config["cross_attention"]
    )


RNG = np.random.default_rng(0)
LONG, SHORT = RNG.standard_normal((5, 16)), RNG.standard_normal((3, 16))
MANY = RNG.standard_normal((2, 5, 16))
