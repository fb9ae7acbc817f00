"""Which stages permute with the rows, and which do not: over random configs, and by hand."""

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import ArrayLike

import runs
from cases import small
from compute import equivariance, removing, selection, stages, weights
from compute.equivariance import Outcome, Question
from compute.trace import Run
from compute.types import Inputs, Selected
from oracle import forward
from oracle.configs import Case
from runs import case_of

ORDER = [3, 0, 4, 1, 2]
ROWS = np.random.default_rng(7).standard_normal((5, 11))


def asked(run: Run, order: ArrayLike) -> dict[str, Outcome]:
    """The outcome of each case for a run's config, weights, input and stages."""
    question = Question(
        config=run.config,
        weights=run.weights,
        inputs=run.inputs,
        order=np.asarray(order),
        wanted=run.selection.wanted,
        check=lambda: None,
    )
    return {found.variant.case.name: found for found in equivariance.outcomes(question)}


def block(**given: object) -> small.Config:
    parts = {"attention": small.attention(3, 2), "norm": small.norm("layernorm"), **given}
    return small.model(11, ffn=small.mlp(13), **parts)


def outcomes_of(
    config: small.Config, order: ArrayLike = ORDER, **inputs: ArrayLike
) -> dict[str, Outcome]:
    given = inputs or {"tensor": ROWS}
    return asked(small.run(config, small.drawn(config, 1), **given), order)


PLACES: Mapping[str, small.Config] = {
    "sinusoidal": {"kind": "sinusoidal"},
    "learned": {"kind": "learned", "n_positions": 7},
    "rope": small.rope(2),
    "alibi": {"kind": "alibi", "alibi_rule": "bloom"},
    "t5_bias": {"kind": "t5_bias", "n_buckets": 8, "max_distance": 16, "bidirectional": True},
}


# "Unmasked self-attention without positional information is permutation-equivariant."


@pytest.mark.parametrize("seed", range(120))
def test_without_positions_and_mask_every_stage_of_a_random_model_permutes(seed: int) -> None:
    run = runs.run_of_case(case_of(seed), select=[Selected(name="*")])
    order = np.random.default_rng(seed).permutation(run.inputs.positions)
    found = asked(run, order)["without_both"]
    # sums over keys in another order: hundreds of roundings of 1.1e-16
    assert [stage.name for stage in found.stages if stage.rel > 1e-12] == []
    assert found.first is None
    assert found.stages != ()


@pytest.mark.parametrize("kind", PLACES)
def test_positions_are_seen_by_what_they_move(kind: str) -> None:
    found = outcomes_of(block(position=PLACES[kind]))
    first = found["as_it_is"].first
    assert first is not None
    entering = {"rope": "attn.q_rot", "alibi": "attn.scores", "t5_bias": "attn.scores"}
    assert first.name == {"rope": "blocks.0.attn.q_rot"}.get(
        kind, f"blocks.0.{entering[kind]}" if kind in entering else "pos_embed"
    )
    assert found["without_positions"].first is None
    assert found["without_mask"].variant.same_as == "as_it_is"
    assert not found["as_it_is"].stages[-1].permutes


@pytest.mark.parametrize("given", [{"mask": "causal"}, {"window": 2}])
def test_a_mask_is_seen_in_the_scores(given: Mapping[str, object]) -> None:
    found = outcomes_of(block(attention=small.attention(3, 2, **given)))
    first = found["as_it_is"].first
    assert first is not None
    assert first.name == "blocks.0.attn.scores"
    assert np.isinf(first.max_abs)
    assert found["without_mask"].first is None
    assert found["without_positions"].variant.same_as == "as_it_is"


def test_positions_and_masks_are_each_enough() -> None:
    config = block(position=PLACES["rope"], attention=small.attention(3, 2, mask="causal"))
    found = outcomes_of(config)
    passing = {name: outcome.first is None for name, outcome in found.items()}
    assert passing == {
        "as_it_is": False,
        "without_positions": False,
        "without_mask": False,
        "without_both": True,
    }


def test_windows_of_single_blocks_are_masks_too() -> None:
    config = block() | {"n_layers": 2}
    entry = {"window": None, "scale": 2**-0.5, "theta": None, "scaling": {"kind": "none"}}
    config["layers"] = [entry, {**entry, "window": 2}]
    found = outcomes_of(config)
    first = found["as_it_is"].first
    assert first is not None
    assert first.name == "blocks.1.attn.scores"
    assert found["without_mask"].first is None


def is_generic(case: Case) -> bool:
    """Every row attends to others, and no mask of the input or of a window hides who they are."""
    masked = {"key_mask", "attention_mask", "position_ids"} & set(case.inputs)
    if case.config["attention"]["kind"] == "none" or case.config["layers"] or masked:
        return False
    positions, window = runs.shape_of(case.inputs)[-1], case.config["attention"]["window"]
    return positions >= 3 and (window is None or 2 <= window < positions)


GENERIC = [seed for seed in range(500) if is_generic(case_of(seed))]


@pytest.mark.parametrize("seed", GENERIC)
def test_a_random_model_with_positions_or_a_mask_has_a_stage_that_does_not_permute(
    seed: int,
) -> None:
    run = runs.run_of_case(case_of(seed), select=[Selected(name="*")])
    found = asked(run, equivariance.rotated_by_one(run.inputs.positions))
    for outcome in found.values():
        config = outcome.variant.config
        seeing = removing.has_positions(config) or removing.has_masks(config)
        assert (outcome.first is not None) == seeing


def test_the_random_models_that_see_order_are_many_and_of_every_kind() -> None:
    assert len(GENERIC) >= 20
    kinds = {case_of(seed).config["position"]["kind"] for seed in GENERIC}
    assert kinds == {"none", *PLACES}


# What it says of a stage


def test_differences_are_those_of_two_runs_of_the_oracle() -> None:
    config = block(position=PLACES["rope"], attention=small.attention(3, 2, mask="causal"))
    drawn = small.drawn(config, 1)
    found = {x.name: x for x in outcomes_of(config)["as_it_is"].stages}
    one = forward.trace(config, drawn, tensor=ROWS)
    other = forward.trace(config, drawn, tensor=[ROWS[i] for i in ORDER])
    for name in ("resid_post", "ffn_out", "attn_out", "resid_mid"):
        apart = [
            max(
                abs(float(other[f"blocks.0.{name}"][i, c] - one[f"blocks.0.{name}"][row, c]))
                for c in range(11)
            )
            for i, row in enumerate(ORDER)
        ]
        stage = found[f"blocks.0.{name}"]
        assert stage.apart == pytest.approx(apart, abs=1e-13)
        assert stage.max_abs == pytest.approx(max(apart), abs=1e-13)
        assert stage.largest == pytest.approx(np.abs(one[f"blocks.0.{name}"]).max(), abs=1e-13)
        assert stage.failing.tolist() == [i for i in range(5) if apart[i] > 1e-10]
    pattern = found["blocks.0.attn.pattern"].apart
    A, B = one["blocks.0.attn.pattern"], other["blocks.0.attn.pattern"]
    for i in range(5):
        gaps = [abs(B[h, i, j] - A[h, ORDER[i], ORDER[j]]) for h in range(3) for j in range(5)]
        assert pattern is not None
        assert pattern[i] == pytest.approx(max(gaps), abs=1e-13)


def test_rows_that_see_what_they_saw_do_not_fail() -> None:
    config = block(attention=small.attention(3, 2, mask="causal"))
    found = {x.name: x for x in outcomes_of(config, [1, 0, 2, 3, 4])["as_it_is"].stages}
    # rows 2, 3 and 4 have the same rows before them, in another order
    assert found["blocks.0.resid_post"].failing.tolist() == [0, 1]


def test_a_row_that_stays_has_no_difference_under_the_identity() -> None:
    config = block(position=PLACES["learned"], attention=small.attention(3, 2, mask="causal"))
    found = outcomes_of(config, range(5))["as_it_is"]
    assert [stage.max_abs for stage in found.stages] == [0.0] * len(found.stages)


def test_positions_stay_with_their_places_under_left_padding_too() -> None:
    config = block(position=PLACES["learned"])
    mask = np.array([False, True, True, True, True])
    found = outcomes_of(config, [4, 1, 2, 3, 0], tensor=ROWS, key_mask=mask)["as_it_is"]
    pos_embed = found.stages[0]
    assert pos_embed.name == "pos_embed"
    # ids 0 0 1 2 3 in both runs: places 0 and 4 were exchanged
    assert pos_embed.failing.tolist() == [0, 4]


def test_what_belongs_to_a_row_moves_with_it() -> None:
    pairs = np.arange(9).reshape(3, 3) % 2 == 0
    inputs = Inputs(
        token_ids=np.array([5, 6, 7]),
        token_types=np.array([0, 1, 2]),
        key_mask=np.array([True, False, True]),
        attention_mask=pairs,
        position_ids=np.array([10, 11, 12]),
    )
    moved = equivariance.permuted(inputs, np.array([2, 0, 1]))
    assert moved.token_ids is not None
    assert moved.token_ids.tolist() == [7, 5, 6]
    assert moved.token_types is not None
    assert moved.token_types.tolist() == [2, 0, 1]
    assert moved.key_mask is not None
    assert moved.key_mask.tolist() == [True, True, False]
    assert moved.attention_mask is not None
    assert moved.attention_mask.tolist() == [[pairs[i, j] for j in (2, 0, 1)] for i in (2, 0, 1)]
    assert moved.position_ids is not None
    assert moved.position_ids.tolist() == [10, 11, 12]


@pytest.mark.parametrize("batched", [False, True])
def test_masks_that_move_with_their_rows_break_nothing(batched: bool) -> None:
    rng = np.random.default_rng(3)
    shape = (2, 5) if batched else (5,)
    tensor, key_mask = rng.standard_normal((*shape, 11)), rng.random(shape) < 0.7
    pairs = rng.random((*shape, 5)) < 0.7
    found = outcomes_of(block(), tensor=tensor, key_mask=key_mask, attention_mask=pairs)
    assert found["as_it_is"].first is None
    assert found["without_both"].variant.same_as == "as_it_is"


def test_a_memory_stays_where_it_is() -> None:
    seen = 0
    for seed in range(60):
        case = case_of(seed)
        if case.config["encoder"] is None:
            continue
        run = runs.run_of_case(case, select=[Selected(name="*")])
        order = equivariance.rotated_by_one(run.inputs.positions)
        for outcome in asked(run, order).values():
            theirs = [x for x in outcome.stages if x.name.startswith("encoder.")]
            assert {x.max_abs for x in theirs} == {0.0}
            assert {x.apart is None for x in theirs} == {True}
        seen += 1
    assert seen >= 3


def resid_post(before: ArrayLike, after: ArrayLike) -> equivariance.Compared:
    """Rows 0 and 1 of a stage that changed places, beside a second run's."""
    stage = stages.BY_NAME["resid_post"]
    wanted = selection.Wanted("blocks.0.resid_post", stage, {}, False)
    values = np.array(before, np.float64), np.array(after, np.float64)
    return equivariance.compared(wanted, values, np.array([1, 0]), 1e-12)


def test_numbers_that_are_missing_on_one_side_do_not_permute() -> None:
    inf, nan = np.inf, np.nan
    for one, other in ((-inf, 1.0), (1.0, -inf), (inf, -inf), (nan, 1.0), (nan, nan)):
        found = resid_post([[one, 2.0], [3.0, 4.0]], [[3.0, 4.0], [other, 2.0]])
        assert not found.permutes
        assert found.failing.tolist() == [1]
        assert found.worst == 1
        assert found.max_abs == inf


def test_the_same_infinity_on_both_sides_is_no_difference() -> None:
    found = resid_post([[-np.inf, 2.0], [3.0, 4.0]], [[3.0, 4.0], [-np.inf, 2.0]])
    assert found.permutes
    assert (found.max_abs, found.largest, found.worst) == (0.0, 4.0, None)


def test_a_difference_counts_beside_the_largest_number_of_the_stage() -> None:
    for apart, permutes in ((3e-10, True), (5e-10, False)):
        found = resid_post([[0.0, 400.0], [1.0, 2.0]], [[1.0, 2.0 + apart], [0.0, 400.0]])
        assert found.permutes == permutes
        assert found.rel == pytest.approx(apart / 400, rel=1e-3)
        assert found.failing.tolist() == ([] if permutes else [0])


def test_a_stage_of_zeros_has_no_relative_size() -> None:
    assert resid_post([[0.0], [0.0]], [[0.0], [0.0]]).permutes
    found = resid_post([[0.0], [0.0]], [[0.0], [1e-30]])
    assert not found.permutes
    assert found.rel == 1e-30


def test_float32_permutes_to_its_own_tolerance() -> None:
    for seed in range(0, 120, 3):
        case = runs.rounded(case_of(seed))
        run = runs.run_of_case(case, dtype="float32")
        order = np.random.default_rng(seed).permutation(run.inputs.positions)
        routed = case.config["ffn"]["kind"] == "moe"  # near ties may go to another expert
        if not routed:
            assert asked(run, order)["without_both"].first is None


# The default, and the variants


def test_the_default_moves_every_row() -> None:
    assert equivariance.rotated_by_one(4).tolist() == [1, 2, 3, 0]
    assert equivariance.rotated_by_one(1).tolist() == [0]


def test_a_reversal_would_hide_alibi() -> None:
    config = block(position=PLACES["alibi"])
    assert outcomes_of(config, [4, 3, 2, 1, 0])["as_it_is"].first is None
    assert outcomes_of(config, equivariance.rotated_by_one(5))["as_it_is"].first is not None


def test_weights_of_a_model_serve_it_without_its_positions() -> None:
    config = block(position=PLACES["learned"])
    run = small.run(config, small.drawn(config, 1), tensor=ROWS)
    bare = removing.without(run.config, positions=True, mask=True)
    drawn = small.drawn(config, 1)
    rebuilt = weights.build(bare, lambda tensor: drawn[tensor.name], "float64")
    theirs = run.weights.blocks[0].attention.W_QKV
    assert rebuilt.blocks[0].attention.W_QKV.tobytes() == theirs.tobytes()


def test_stages_that_a_case_lacks_are_left_out_of_it() -> None:
    config = block(position=PLACES["rope"])
    found = outcomes_of(config)
    names = {case: [x.name for x in outcome.stages] for case, outcome in found.items()}
    assert "blocks.0.attn.q_rot" in names["as_it_is"]
    assert "blocks.0.attn.q_rot" not in names["without_positions"]
    scene = selection.scene_for(found["without_positions"].variant.config, Inputs(tensor=ROWS))
    assert scene.absence("blocks.0.attn.q_rot") is not None


def test_a_check_that_raises_stops_the_runs() -> None:
    config = block()
    run = small.run(config, small.drawn(config, 1), tensor=ROWS)

    def stop() -> None:
        raise TimeoutError

    question = Question(
        config=run.config,
        weights=run.weights,
        inputs=run.inputs,
        order=np.asarray(ORDER),
        wanted=run.selection.wanted,
        check=stop,
    )
    with pytest.raises(TimeoutError):
        list(equivariance.outcomes(question))
