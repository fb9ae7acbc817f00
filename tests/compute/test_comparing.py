"""Two runs beside each other: entries counted by hand, and runs that differ in known ways."""

from dataclasses import replace
from math import inf, isnan

import numpy as np
import pytest

import runs
from cases import small
from compute import comparing, selection
from compute.comparing import Comparison, difference
from compute.trace import Run, trace
from compute.types import Selected

A_NAME = "blocks.0.resid_post"


def compared(a: Run, b: Run) -> Comparison:
    scenes = [selection.scene_for(run.config, run.inputs) for run in (a, b)]
    return comparing.compare(trace(a), trace(b), *scenes)


def run_of(
    seed: int = 0, rows: int = 3, select: list[Selected] | None = None, **given: object
) -> Run:
    parts = {"attention": small.attention(2, 3), "ffn": small.mlp(7), **given}
    config = small.model(6, **parts)
    tensor = np.random.default_rng(seed).standard_normal((rows, 6))
    return runs.run_of(config, small.drawn(config, 0), {"tensor": tensor}, select=select)


# One stage


def test_difference_is_measured_by_hand() -> None:
    found = difference(A_NAME, np.array([[3.0, 4.0]]), np.array([[3.0, 2.0]]))
    assert found.max_abs == 2.0
    assert found.rel == 2.0 / 3.0
    assert found.norm_ratio == 5.0 / np.sqrt(13.0)
    assert found.apart == 0


def test_arrays_longer_than_a_piece_are_compared_to_their_ends() -> None:
    a = np.zeros((3, 50_000), np.float32)
    b = np.array(a)
    b[2, -1] = 7.0
    a[0, 0] = 1.0
    found = difference(A_NAME, a, b)
    assert (found.max_abs, found.rel, found.norm_ratio) == (7.0, 1.0, 1.0 / 7.0)


def test_float32_and_float64_are_compared_in_float64() -> None:
    found = difference(A_NAME, np.array([0.1], np.float32), np.array([0.1]))
    assert found.max_abs == float(np.float32(0.1)) - 0.1


def test_the_same_infinities_and_nans_are_no_difference() -> None:
    same = np.array([-inf, inf, np.nan, 1.0])
    found = difference(A_NAME, same, np.array(same))
    assert (found.max_abs, found.rel, found.norm_ratio, found.apart) == (0.0, 0.0, 1.0, 0)


@pytest.mark.parametrize("pair", [(inf, -inf), (inf, 1.0), (np.nan, 1.0), (np.nan, inf)])
def test_entries_that_are_not_finite_and_not_the_same_are_infinitely_apart(
    pair: tuple[float, float],
) -> None:
    found = difference(A_NAME, np.array([2.0, pair[0]]), np.array([1.0, pair[1]]))
    assert (found.max_abs, found.rel, found.norm_ratio, found.apart) == (inf, inf, 2.0, 1)


def test_ratio_to_zeros_is_no_number() -> None:
    found = difference(A_NAME, np.ones(3), np.zeros(3))
    assert found.max_abs == 1.0
    assert isnan(found.rel)
    assert isnan(found.norm_ratio)


def test_whole_numbers_are_compared_as_numbers() -> None:
    found = difference("ffn.experts", np.array([[0, 3]]), np.array([[1, 3]]))
    assert found.max_abs == 1.0


# Two runs


@pytest.mark.parametrize("seed", range(25))
def test_a_run_is_no_different_from_itself(seed: int) -> None:
    run = runs.run_of_case(runs.case_of(seed))
    found = compared(run, run)
    assert [one.name for one in found.differences] == list(runs.states(run))
    assert {one.max_abs for one in found.differences} == {0.0}
    assert not found.shapes
    assert not found.only_in_a
    assert not found.only_in_b
    assert found.first_beyond(0.0) is None


def test_first_difference_is_the_stage_that_was_changed() -> None:
    run = run_of()
    changed = replace(run, patches={"blocks.0.attn.z": lambda z: z + 1e-3})
    found = compared(run, changed)
    assert found.first_beyond(1e-6) == "blocks.0.attn.z"
    before = {one.name: one.max_abs for one in found.differences}
    # one rounding of numbers of order one beside the change
    np.testing.assert_allclose(before["blocks.0.attn.z"], 1e-3, rtol=0, atol=1e-15)
    assert before["blocks.0.attn.pattern"] == 0.0
    assert before["blocks.0.resid_post"] > 1e-6
    assert found.first_beyond(1.0) is None


def test_order_is_that_of_computation_where_the_norm_comes_after() -> None:
    """The catalogue lists norm1 before attention, a post-norm block computes it behind."""
    run = run_of(norm=small.norm("layernorm", placement="post"))
    changed = replace(run, patches={"blocks.0.attn_sum": lambda x: x * 2.0})
    assert compared(run, changed).first_beyond(1e-6) == "blocks.0.attn_sum"
    names = [one.name for one in compared(run, changed).differences]
    assert names.index("blocks.0.attn_out") < names.index("blocks.0.norm1.out")


def test_every_difference_is_measured_against_the_other_run() -> None:
    one, two = run_of(0), run_of(1)
    states = runs.states(one), runs.states(two)
    for found in compared(one, two).differences:
        a, b = states[0][found.name], states[1][found.name]
        assert found.max_abs == np.abs(a - b).max()
        assert found.rel == np.abs(a - b).max() / np.abs(b).max()
        # sums of a few squares in another order
        np.testing.assert_allclose(
            found.norm_ratio, np.linalg.norm(a) / np.linalg.norm(b), rtol=1e-14
        )


def test_shapes_that_differ_are_listed_and_not_compared() -> None:
    found = compared(run_of(rows=3), run_of(rows=4))
    assert not found.differences
    shapes = {one.name: (one.a, one.b) for one in found.shapes}
    assert shapes["blocks.0.attn.pattern"] == ((2, 3, 3), (2, 4, 4))


def test_rows_that_are_selected_are_compared_by_their_order() -> None:
    last = [Selected(name="resid_post", where={"position": (-1,)})]
    found = compared(run_of(rows=3, select=last), run_of(rows=4, select=last))
    assert [one.name for one in found.differences] == [A_NAME]


def test_stages_of_one_run_alone_come_with_the_reason() -> None:
    pre = run_of(norm=small.norm("layernorm"))
    post = run_of(norm=small.norm("layernorm", placement="post"), n_layers=2)
    found = compared(pre, post)
    assert not found.only_in_a
    assert found.only_in_b["blocks.0.attn_sum"] == trace_absence(pre, "blocks.0.attn_sum")
    assert found.only_in_b["blocks.1.attn_out"] == "there is 1 block"
    narrow = run_of(select=[Selected(name="Z")])
    assert compared(narrow, run_of()).only_in_b["blocks.0.attn.z"] == "not selected there"


def trace_absence(run: Run, name: str) -> str | None:
    return selection.scene_for(run.config, run.inputs).absence(name)


def test_stages_of_an_encoder_come_with_the_reason() -> None:
    seed = next(s for s in range(400) if runs.case_of(s).config["encoder"] is not None)
    two_stacks = runs.run_of_case(runs.case_of(seed))
    found = compared(two_stacks, run_of())
    of_encoder = [why for name, why in found.only_in_a.items() if name.startswith("encoder.")]
    assert set(of_encoder) == {"the model has no encoder"}
