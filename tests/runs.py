"""Runs of compute built from an oracle case, so that both sides read the same data."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from compute import config_json, selection, stages, weights
from compute.driver import Patch
from compute.trace import Run, trace
from compute.types import AXES, DType, Inputs, Selected
from oracle.configs import Case, random_case

Arrays = Mapping[str, npt.NDArray[Any]]


def run_of(
    config: Mapping[str, Any],
    values: Arrays,
    inputs: Arrays,
    *,
    dtype: DType = "float64",
    select: Sequence[Selected] | None = None,
    patches: Mapping[str, Patch] | None = None,
) -> Run:
    """A Run of a resolved config (as JSON), weights by name and inputs by keyword."""
    resolved = config_json.from_json(config)
    read = inputs_of(inputs)
    scene = selection.scene_for(resolved, read)
    return Run(
        config=resolved,
        weights=weights.build(resolved, lambda tensor: values[tensor.name], dtype),
        inputs=read,
        selection=selection.resolve(select, scene),
        patches=patches or {},
    )


def inputs_of(given: Mapping[str, Any]) -> Inputs:
    """Inputs by keyword, those of a memory too."""
    memory = given.get("memory")
    own = {name: value for name, value in given.items() if name != "memory"}
    return Inputs(**own, memory=None if memory is None else inputs_of(memory))


def states(run: Run) -> dict[str, npt.NDArray[Any]]:
    """Every stage a run answers, by full name, in the order it was computed in."""
    return {made.wanted.name: made.values for made in trace(run).made}


@cache
def case_of(seed: int) -> Case:
    """The seeded case, drawn once."""
    return random_case(seed)


def rounded(case: Case) -> Case:
    """The same case with weights and rows that float32 holds exactly, still as float64."""
    inputs = _rounded(case.inputs)
    values = {name: exact_in_float32(value) for name, value in case.weights.items()}
    return Case(seed=case.seed, config=case.config, weights=values, inputs=inputs)


def _rounded(inputs: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(inputs)
    if "tensor" in made:
        made["tensor"] = exact_in_float32(made["tensor"])
    if made.get("memory") is not None:
        made["memory"] = _rounded(made["memory"])
    return made


def exact_in_float32(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    return values.astype(np.float32).astype(np.float64)


def run_of_case(
    case: Case,
    *,
    dtype: DType = "float64",
    select: Sequence[Selected] | None = None,
    patches: Mapping[str, Patch] | None = None,
) -> Run:
    """A Run of a case."""
    return run_of(
        case.config, case.weights, case.inputs, dtype=dtype, select=select, patches=patches
    )


def shape_of(inputs: Mapping[str, Any]) -> tuple[int, ...]:
    """(n) or (b, n)."""
    return inputs["tensor"].shape[:-1] if "tensor" in inputs else inputs["token_ids"].shape


def has_attention(case: Case) -> bool:
    return case.config["attention"]["kind"] != "none"


def every_stage(case: Case) -> list[Selected]:
    """Whole stages, derived ones too: attn.source_out at each receiving position."""
    wanted = [Selected(name="*")]
    for stack, attends, count in stacks(case):
        if attends:
            wanted.append(Selected(name=f"{stack}blocks.*.attn.dots"))
            where = {"position": tuple(range(count))}
            wanted.append(Selected(name=f"{stack}blocks.*.attn.source_out", where=where))
    return wanted


def stacks(case: Case) -> list[tuple[str, bool, int]]:
    """Prefix of each stack, whether it has attention, how many positions it reads."""
    own = [("", has_attention(case), shape_of(case.inputs)[-1])]
    encoder = case.config.get("encoder")
    if encoder is None:
        return own
    attends = encoder["attention"]["kind"] != "none"
    return [*own, ("encoder.", attends, shape_of(case.inputs["memory"])[-1])]


def relative_error(
    values: npt.NDArray[Any], exact: npt.NDArray[np.float64], size: float = 0.0
) -> float:
    """Largest |values - exact| over the largest finite |exact| (or over `size`, if that is
    larger); inf where the -inf differ."""
    finite = np.isfinite(exact)
    if not np.array_equal(finite, np.isfinite(values)):
        return float("inf")
    size = max(size, float(np.abs(exact[finite]).max(initial=0.0)))
    apart = float(np.abs(values[finite] - exact[finite]).max(initial=0.0))
    return apart / size if size else apart


EVERYTHING = [Selected(name="*"), Selected(name="blocks.*.attn.dots")]
"""Every primary stage, attn.head_out and attn.dots, of a model with attention."""


def random_selection(rng: np.random.Generator, case: Case) -> list[Selected]:
    """Some of the stages that exist, derived ones too, some of them sliced or summed up."""
    config = config_json.from_json(case.config)
    scene = selection.scene_for(config, inputs_of(case.inputs))
    ordered = stages.in_order(config)
    existing = [(name, stage) for name, stage in ordered if scene.absence(name) is None]
    count = int(rng.integers(1, 1 + min(9, len(existing))))
    return [
        random_slice(rng, *existing[at], scene.lengths_of(existing[at][0]))
        for at in rng.choice(len(existing), count, replace=False)
    ]


def random_slice(
    rng: np.random.Generator, name: str, stage: stages.Stage, lengths: Mapping[str, int]
) -> Selected:
    """A stage whole, or some indices of some axes, from either end, in any order."""
    where = {
        AXES[letter]: random_indices(rng, lengths[letter])
        for letter in stages.axes_of(stage, "b" in lengths)
        if letter != "1" and rng.random() < 0.3
    }
    if stage.name == "attn.source_out":
        where["position"] = random_indices(rng, lengths["n"])
    return Selected(name=name, where=where, summary=bool(rng.random() < 0.2))


def random_indices(rng: np.random.Generator, length: int) -> tuple[int, ...]:
    count = int(rng.integers(1, length + 2))
    return tuple(int(i) for i in rng.integers(-length, length, count))
