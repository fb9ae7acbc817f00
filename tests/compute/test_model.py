"""Every stage of compute against the reference, in both dtypes, over seeded configs."""

from collections.abc import Mapping

import numpy as np
import pytest

import runs
from compute.types import DType
from oracle.configs import Case
from oracle.forward import trace as reference
from oracle.functions import Array

CHUNK = 50
CHUNKS = pytest.mark.parametrize("first", range(0, 500, CHUNK))


def largest_score(exact: Mapping[str, Array]) -> float:
    scores = [value for name, value in exact.items() if name.endswith("attn.scores")]
    return max([np.abs(S[np.isfinite(S)]).max(initial=0.0) for S in scores], default=0.0)


def size_of(name: str, exact: Mapping[str, Array], scale: float) -> float:
    """What a score is a sum of may be larger than the few scores that a mask leaves."""
    if not name.endswith("attn.scores"):
        return 0.0
    dots = exact[name.replace("scores", "dots")]
    return float(scale * np.abs(dots).max())


def misfits(case: Case, dtype: DType) -> list[str]:
    """The stages of a case whose name, shape, dtype or values are not the reference's."""
    exact = reference(case.config, case.weights, **case.inputs)
    got = runs.states(runs.run_of_case(case, dtype=dtype, select=runs.every_stage(case)))
    if set(got) != set(exact):
        return [f"{case.seed}: {sorted(set(got) ^ set(exact))}"]
    allowed = tolerance(dtype, largest_score(exact))
    scale = case.config["attention"].get("scale", 0.0)
    return [
        f"{case.seed} {name}: {got[name].dtype}{got[name].shape}, {value.shape} expected"
        for name, value in exact.items()
        if got[name].shape != value.shape
        or got[name].dtype != dtype
        or runs.relative_error(got[name], value, size_of(name, exact, scale)) > allowed
    ]


def tolerance(dtype: DType, largest: float) -> float:
    """float64: hundreds of roundings of 1.1e-16 each, over up to three blocks.

    float32: tens of roundings of 6e-8; and a score S that is rounded by eps |S| moves every
    weight that is made of it by as much, so large scores allow more.
    """
    if dtype == "float64":
        return 1e-12
    return max(2e-6, 8 * float(np.finfo(np.float32).eps) * largest)


@CHUNKS
def test_every_stage_is_the_references_in_float64(first: int) -> None:
    cases = [runs.case_of(seed) for seed in range(first, first + CHUNK)]
    assert [misfit for case in cases for misfit in misfits(case, "float64")] == []


@CHUNKS
def test_every_stage_is_the_references_in_float32(first: int) -> None:
    cases = [runs.rounded(runs.case_of(seed)) for seed in range(first, first + CHUNK)]
    assert [misfit for case in cases for misfit in misfits(case, "float32")] == []


def test_the_comparison_sees_a_masked_pair_that_is_not_masked() -> None:
    exact = np.array([0.0, -np.inf])
    assert runs.relative_error(np.array([0.0, 1.0]), exact) == np.inf
    assert runs.relative_error(np.array([0.0, -np.inf]), exact) == 0.0
