"""Every stage of compute against the reference, in both dtypes, over seeded configs."""

import numpy as np
import pytest

import agreement
import runs
from compute.types import DType
from oracle.configs import Case
from oracle.forward import trace as reference

CHUNK = 50
CHUNKS = pytest.mark.parametrize("first", range(0, 500, CHUNK))


TIES = 3
"""No more cases of a chunk may leave to rounding which expert they choose."""


def misfits(case: Case, dtype: DType) -> tuple[list[str], list[str]]:
    """The stages of a case whose name, shape, dtype or values are not the reference's; and the
    routers whose choice the dtype cannot know."""
    exact = reference(case.config, case.weights, **case.inputs)
    got = runs.states(runs.run_of_case(case, dtype=dtype, select=runs.every_stage(case)))
    if set(got) != set(exact):
        return [f"{case.seed}: {sorted(set(got) ^ set(exact))}"], []
    allowed = agreement.tolerance(dtype, exact)
    sizes = agreement.sizes(case.config, exact)
    found = [
        f"{case.seed} {name}: {got[name].dtype}{got[name].shape}, {value.shape} expected"
        for name, value in exact.items()
        if got[name].shape != value.shape
        or got[name].dtype != agreement.dtype_of(name, dtype)
        or runs.relative_error(got[name], value, sizes[name]) > allowed
    ]
    return found, agreement.ties(exact, allowed)


@CHUNKS
def test_every_stage_is_the_references_in_float64(first: int) -> None:
    cases = [runs.case_of(seed) for seed in range(first, first + CHUNK)]
    assert [misfit for case in cases for misfit in misfits(case, "float64")[0]] == []


@CHUNKS
def test_every_stage_is_the_references_in_float32(first: int) -> None:
    cases = [runs.rounded(runs.case_of(seed)) for seed in range(first, first + CHUNK)]
    found = [misfits(case, "float32") for case in cases]
    assert [misfit for wrong, tied in found if not tied for misfit in wrong] == []
    assert sum(bool(tied) for _, tied in found) <= TIES


def test_a_tie_of_experts_is_two_logits_as_close_as_they_are_rounded() -> None:
    chosen = {"ffn.experts": np.zeros((1, 1), np.int64)}
    assert agreement.ties(chosen | {"ffn.router": np.array([[4.0, 4.0 - 1e-6, 0.0]])}, 1e-6)
    assert not agreement.ties(chosen | {"ffn.router": np.array([[4.0, 3.9, 3.9]])}, 1e-6)


def test_the_comparison_sees_a_masked_pair_that_is_not_masked() -> None:
    exact = np.array([0.0, -np.inf])
    assert runs.relative_error(np.array([0.0, 1.0]), exact) == np.inf
    assert runs.relative_error(np.array([0.0, -np.inf]), exact) == 0.0
