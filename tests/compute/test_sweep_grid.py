"""The grid of a sweep: which slices are changed, and what is refused."""

import numpy as np
import pytest

from compute.errors import QuestionError
from compute.types import Intervened
from sweeps import kept, literally, measured, plan_of, run_of_blocks, swept


def test_axes_that_are_not_of_the_grid_are_changed_whole_or_as_narrowed() -> None:
    run = run_of_blocks(0)
    both = plan_of(run, Intervened(stage="attn.z", op="zero", where={"head": (-1, 0)}), ["block"])
    alone = plan_of(run, Intervened(stage="attn.z", op="zero"), ["block"])
    np.testing.assert_array_equal(swept(both, run, None).values, swept(alone, run, None).values)
    narrowed = Intervened(stage="attn.z", op="zero", where={"position": (-1, 1), "head": (1,)})
    values = swept(plan_of(run, narrowed, ["block"]), run, None).values
    measure = measured("blocks.2.resid_post")
    for block, value in enumerate(values):
        patch = literally("zero", "hnv", {"n": (3, 1), "h": (1,)}, None)
        whole = kept(run, [measure.stage], {f"blocks.{block}.attn.z": patch})
        assert value == measure.of(whole[measure.stage])


def test_without_block_in_the_grid_all_blocks_are_changed_at_once() -> None:
    run = run_of_blocks(0)
    planned = plan_of(run, Intervened(stage="ffn_out", op="zero"), ["position"])
    found = swept(planned, run, None).values
    measure = measured("blocks.2.resid_post")
    for position, value in enumerate(found):
        patch = literally("zero", "nd", {"n": (position,)}, None)
        patches = {f"blocks.{layer}.ffn_out": patch for layer in range(3)}
        assert value == measure.of(kept(run, [measure.stage], patches)[measure.stage])


def test_where_chooses_the_entries_of_the_grid_and_their_order() -> None:
    run = run_of_blocks(0)
    whole = plan_of(run, Intervened(stage="attn.z", op="zero"), ["head", "block"])
    narrowed = {"block": (2, 0), "head": (-1,)}
    some = plan_of(run, Intervened(stage="attn.z", op="zero", where=narrowed), ["head", "block"])
    assert dict(some.grid.axes) == {"head": (1,), "block": (2, 0)}
    expected = swept(whole, run, None).values[[1]][:, [2, 0]]
    np.testing.assert_array_equal(swept(some, run, None).values, expected)


def test_a_value_of_the_shape_of_a_cell_is_added_in_each() -> None:
    run = run_of_blocks(0)
    direction = np.arange(6.0)[None]
    planned = plan_of(
        run,
        Intervened(stage="resid_post", op="add", value=direction, where={"block": (2,)}),
        ["position"],
    )
    found = swept(planned, run, None)
    weighed = float(np.dot(np.arange(6.0), np.arange(1.0, 7.0)))
    # nothing but an addition stands between: the roundings of one sum of numbers of order ten
    np.testing.assert_allclose(found.values[3] - found.base, weighed, atol=1e-13)
    assert found.values[:3].tolist() == [found.base] * 3


@pytest.mark.parametrize(
    ("asked", "over", "places"),
    [
        (Intervened(stage="attn.zz", op="zero"), ["block"], [("stage",)]),
        (Intervened(stage="attn.q_rot", op="zero"), ["block"], [("stage",)]),
        (Intervened(stage="attn.head_out", op="zero"), ["block"], [("stage",)]),
        (Intervened(stage="*", op="zero"), ["block"], [("stage",)]),
        (Intervened(stage="attn_out", op="zero"), ["head", "neuron"], [("over", 0), ("over", 1)]),
        (Intervened(stage="attn_out", op="zero", where={"head": (0,)}), ["block"],
         [("where", "head")]),
        (Intervened(stage="attn.z", op="zero", where={"head": (0, 2), "block": (3,)}), ["block"],
         [("where", "block", 0), ("where", "head", 1)]),
        (Intervened(stage="blocks.1.attn.z", op="zero", where={"block": (1, 0)}), ["block"],
         [("where", "block", 1)]),
        (Intervened(stage="attn.z", op="scale"), ["block"], [()]),
        (Intervened(stage="attn.z", op="zero", value=1.0), ["block"], [("value",)]),
        (Intervened(stage="attn.z", op="zero", over=("position",)), ["block"], [("mean_over",)]),
        (Intervened(stage="attn.z", op="mean", over=("d_ff",)), ["block"], [("mean_over",)]),
        (Intervened(stage="attn.z", op="add", value=np.zeros(3)), ["block"], [("value",)]),
        (Intervened(stage="attn.z", op="zero", where={"head": (0, 0)}), ["block"],
         [("where", "head")]),
    ],
)  # fmt: skip
def test_every_fault_is_placed_where_a_request_has_it(
    asked: Intervened, over: list[str], places: list[tuple[str | int, ...]]
) -> None:
    with pytest.raises(QuestionError) as raised:
        plan_of(run_of_blocks(0), asked, over)
    assert [fault.place for fault in raised.value.faults] == places
