"""Total and direct effects: sums by hand from the reference, and the runs that give them."""

from dataclasses import replace

import numpy as np
import pytest

import resumed
import runs
from changed_runs import scene_of
from compute import interventions, stages
from compute.interventions import effects, intervened
from compute.interventions.changing import Change
from compute.interventions.intervened import Path, Question
from compute.measures import measure_of
from compute.types import Intervened
from oracle.configs import Case
from oracle.forward import trace as reference

EXACT = 1e-10
"""Hundreds of roundings of 1.1e-16, of a stream that may be small where a norm divides by it."""


def changes_of(case: Case, *asked: Intervened) -> tuple[Change, ...]:
    return interventions.resolve(asked, scene_of(case))


def direct(case: Case, *asked: Intervened) -> dict[str, np.ndarray]:
    """Every stage of a run whose later updates are those of the run without the change."""
    changes = changes_of(case, *asked)
    clean = runs.states(runs.run_of_case(case))
    later = effects.frozen(effects.later_updates(changes, scene_of(case)), clean)
    patches = {**later, **interventions.patches(changes, {})}
    return runs.states(runs.run_of_case(case, patches=patches))


def zeroed(layer: int, head: int, kind: str = "attn") -> Intervened:
    return Intervened(stage=f"blocks.{layer}.{kind}.z", op="zero", where={"head": (head,)})


def cases_with(stage: str, count: int = 40) -> list[Case]:
    """The first cases whose last block has a stage."""
    found = []
    for seed in range(1000):
        case = runs.case_of(seed)
        if scene_of(case).absence(f"blocks.{case.config['n_layers'] - 1}.{stage}") is None:
            found.append(case)
        if len(found) == count:
            break
    return found


def silent(case: Case, layer: int, head: int, kind: str) -> dict[str, np.ndarray]:
    """The reference with a head whose output projection is zero."""
    matrix = f"blocks.{layer}.{kind}.W_O"
    without = np.array(case.weights[matrix])
    without[head] = 0.0
    return reference(case.config, case.weights | {matrix: without}, **case.inputs)


def added_up(case: Case, layer: int, updates: dict[str, np.ndarray]) -> np.ndarray:
    """The stream that leaves the last block, of the updates from a block on."""
    stream = updates[f"blocks.{layer}.resid_pre"]
    is_post = case.config["norm"].get("placement") == "post"
    parallel = case.config.get("topology") == "parallel"
    norms = {"attn_out": "norm1", "cross_out": "norm_cross", "ffn_out": "norm2"}
    for block in range(layer, case.config["n_layers"]):
        for update, norm in norms.items():
            name = f"blocks.{block}.{update}"
            if name in updates:
                stream = stream + updates[name]
                if is_post and not parallel:
                    stream = resumed.through_norm(case, f"blocks.{block}.{norm}", stream)
    return stream


@pytest.mark.parametrize("kind", ["attn", "cross"])
def test_direct_effect_of_a_head_passes_every_later_update(kind: str) -> None:
    rng = np.random.default_rng(3)
    arrangements = set()
    for case in cases_with(f"{kind}.z"):
        layer = int(rng.integers(case.config["n_layers"]))
        head = int(rng.integers(case.config["attention"]["n_heads"]))
        clean = reference(case.config, case.weights, **case.inputs)
        name = f"blocks.{layer}.{kind}_out"
        updates = clean | {name: silent(case, layer, head, kind)[name]}
        stream = added_up(case, layer, updates)
        got = direct(case, zeroed(layer, head, kind))
        last = f"blocks.{case.config['n_layers'] - 1}.resid_post"
        for stage, value in {last: stream, **resumed.from_top(case, stream)}.items():
            assert runs.relative_error(got[stage], value, 1e-3) <= EXACT, (case.seed, stage)
        arrangements.add((case.config["topology"], case.config["norm"].get("placement")))
    assert len(arrangements) >= (5 if kind == "attn" else 2)


def test_direct_effect_on_the_last_stream_is_the_heads_contribution_taken_away() -> None:
    rng = np.random.default_rng(4)
    seen = 0
    for case in cases_with("attn.z", 80):
        norm = case.config["norm"]
        if norm["kind"] != "none" and norm["placement"] != "pre":
            continue
        layer = int(rng.integers(case.config["n_layers"]))
        head = int(rng.integers(case.config["attention"]["n_heads"]))
        clean = reference(case.config, case.weights, **case.inputs)
        last = f"blocks.{case.config['n_layers'] - 1}.resid_post"
        z = clean[f"blocks.{layer}.attn.z"][..., head, :, :]
        head_out = z @ case.weights[f"blocks.{layer}.attn.W_O"][head]
        change = direct(case, zeroed(layer, head))[last] - clean[last]
        expected = -case.config["residual_multiplier"] * head_out
        size = float(np.abs(clean[last]).max())  # the difference of two states of this size
        assert float(np.abs(change - expected).max()) <= 1e-13 * max(1.0, size), case.seed
        seen += 1
    assert seen > 20


def test_later_updates_are_frozen_and_those_of_the_changed_sublayer_are_not() -> None:
    case = next(
        x
        for x in cases_with("resid_mid", 80)
        if x.config["n_layers"] == 3 and not x.config["cross_attention"]
        and x.config["norm"].get("placement") == "pre"
    )  # fmt: skip
    scene = scene_of(case)

    def later(stage: str, *blocks: int) -> list[str]:
        where = {"block": blocks} if blocks else {}
        changes = changes_of(case, Intervened(stage=stage, op="zero", where=where))
        return list(effects.later_updates(changes, scene))

    two = ["blocks.2.attn_out", "blocks.2.ffn_out"]
    assert later("attn.z", 1) == ["blocks.1.ffn_out", *two]
    assert later("norm1.out", 1) == ["blocks.1.ffn_out", *two]
    assert later("resid_pre", 1) == ["blocks.1.attn_out", "blocks.1.ffn_out", *two]
    assert later("resid_mid", 1) == ["blocks.1.ffn_out", *two]
    assert later("norm2.out", 1) == two
    assert later("ffn_out", 1) == two
    assert later("resid_post", 1) == two
    assert later("resid_post", 2) == []
    assert later("attn.z", 0, 2) == ["blocks.0.ffn_out", "blocks.1.attn_out", "blocks.1.ffn_out",
                                     "blocks.2.ffn_out"]  # fmt: skip


def test_a_norm_that_both_sublayers_read_is_part_of_both() -> None:
    case = next(x for x in map(runs.case_of, range(400)) if x.config["norm"].get("shared"))
    changes = changes_of(case, Intervened(stage="blocks.0.norm1.out", op="zero"))
    names = effects.later_updates(changes, scene_of(case))
    assert not [name for name in names if name.startswith("blocks.0.")]


def test_a_norm_behind_a_sum_is_part_of_no_sublayer() -> None:
    found = [x for x in cases_with("attn_sum", 20) if x.config["ffn"]["kind"] != "none"]
    for case in found:
        got = direct(case, Intervened(stage="blocks.0.norm1.out", op="scale", value=1.5))
        clean = runs.states(runs.run_of_case(case))
        assert np.array_equal(got["blocks.0.norm1.out"], 1.5 * clean["blocks.0.norm1.out"])
        moved = [x for x in clean if x.endswith("_out") and "head_out" not in x
                 and "source_out" not in x and not np.array_equal(got[x], clean[x])]  # fmt: skip
        assert [x for x in moved if x.endswith((".attn_out", ".ffn_out", ".cross_out"))] == []


def test_change_in_the_encoder_has_no_direct_effect_on_the_decoder() -> None:
    found = [x for x in map(runs.case_of, range(300)) if x.config.get("encoder")][:8]
    for case in found:
        asked = Intervened(stage="encoder.blocks.0.resid_pre", op="add", value=1.0)
        clean, got = runs.states(runs.run_of_case(case)), direct(case, asked)
        assert not np.array_equal(
            got["encoder.blocks.0.resid_post"], clean["encoder.blocks.0.resid_post"]
        )
        last = f"blocks.{case.config['n_layers'] - 1}.resid_post"
        assert got[last].tobytes() == clean[last].tobytes()


# The runs of a question.


def question(case: Case, *asked: Intervened, clean: bool = True, path: Path = "total") -> Question:
    run = runs.run_of_case(case)
    scene = scene_of(case)
    name = f"blocks.{case.config['n_layers'] - 1}.resid_post"
    width = scene.lengths_of(name)["d"]
    directions = np.random.default_rng(6).standard_normal((2, width))
    return Question(
        config=run.config,
        inputs=run.inputs,
        selection=run.selection,
        changes=interventions.resolve(asked, scene),
        donors={one.source: run.inputs for one in asked if one.source is not None},
        measures=[
            measure_of(scene, stage=name, direction=direction, place=()) for direction in directions
        ],
        clean=clean,
        path=path,
    )


def answered(case: Case, asked: Question) -> intervened.Found:
    return intervened.answer(asked, runs.run_of_case(case).weights, lambda: None)


@pytest.mark.parametrize("path", ["total", "direct"])
def test_effects_are_read_off_the_three_runs(path: Path) -> None:
    for case in cases_with("attn.z", 15):
        change = zeroed(0, 0)
        asked = question(case, change, path=path)
        found = answered(case, asked)
        clean = runs.states(runs.run_of_case(case))
        patched = interventions.patches(asked.changes, {})
        total = runs.states(runs.run_of_case(case, patches=patched))
        directly = direct(case, change)
        for measure, effect in zip(asked.measures, found.effects, strict=True):
            states = (clean, total, directly)
            expected = [measure.of(each[measure.stage]) for each in states]
            assert [effect.before, effect.total, effect.direct] == expected
        assert found.before is not None
        shown = {made.wanted.name: made.values for made in found.after.made}
        for name, value in (total if path == "total" else directly).items():
            assert shown[name].tobytes() == value.tobytes()
        for made in found.before.made:
            assert made.values.tobytes() == clean[made.wanted.name].tobytes()


def test_without_a_change_a_measure_is_only_told() -> None:
    case = cases_with("attn.z", 1)[0]
    found = answered(case, question(case))
    assert found.before is None
    assert [(effect.total, effect.direct) for effect in found.effects] == [(None, None)] * 2
    clean = runs.states(runs.run_of_case(case))
    assert all(clean[m.wanted.name].tobytes() == m.values.tobytes() for m in found.after.made)


def test_clean_run_is_shown_only_where_it_is_wanted() -> None:
    case = cases_with("attn.z", 1)[0]
    found = answered(case, question(case, zeroed(0, 0), clean=False))
    assert found.before is None
    shown = answered(case, question(case, zeroed(0, 0)))
    assert found.effects == shown.effects


def test_donors_are_run_and_bring_their_values() -> None:
    for case in cases_with("attn.z", 10):
        asked = question(case, Intervened(stage="blocks.0.attn.z", op="patch", source=7))
        found = answered(case, asked)  # from the same input: nothing changes
        assert found.before is not None
        for before, after in zip(found.before.made, found.after.made, strict=True):
            assert before.values.tobytes() == after.values.tobytes()


def test_measuring_never_changes_what_is_shown() -> None:
    for case in cases_with("attn.z", 10):
        asked = question(case, zeroed(0, 0))
        with_measures = answered(case, asked).after
        without = answered(case, replace(asked, measures=[])).after
        assert with_measures.whole.keys() == without.whole.keys()
        for one, other in zip(with_measures.made, without.made, strict=True):
            assert one.values.tobytes() == other.values.tobytes()


def test_check_may_stop_the_work_between_two_changes_of_a_stage() -> None:
    case = cases_with("attn.z", 1)[0]
    many = [Intervened(stage="blocks.0.resid_pre", op="add", value=1.0)] * 20
    run, calls = runs.run_of_case(case), 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls == 15:
            raise TimeoutError

    asked = replace(question(case, *many, clean=False), measures=[])
    with pytest.raises(TimeoutError):
        intervened.answer(asked, run.weights, check)


# Differences.


def test_delta_is_after_less_before_and_masked_scores_do_not_differ() -> None:
    before = np.array([1.0, -np.inf, np.inf, 2.0, np.nan], np.float32)
    after = np.array([3.0, -np.inf, np.inf, -np.inf, np.nan], np.float32)
    made = intervened.difference(before, after)
    assert made.dtype == np.float32
    assert np.array_equal(made, [2.0, 0.0, 0.0, -np.inf, np.nan], equal_nan=True)


def test_delta_of_experts_is_of_whole_numbers() -> None:
    made = intervened.difference(np.array([[0, 2]]), np.array([[1, 0]]))
    assert made.dtype == np.int64
    assert made.tolist() == [[1, -2]]


def test_every_stage_that_a_run_has_has_a_delta() -> None:
    for seed in range(20):
        case = runs.case_of(seed)
        asked = question(case, Intervened(stage="blocks.0.resid_pre", op="add", value=1.0))
        found = answered(case, asked)
        assert found.before is not None
        made = intervened.delta(found.before, found.after)
        assert [m.wanted.name for m in made] == [m.wanted.name for m in found.after.made]
        assert not any(m.values.flags.writeable for m in made)
        names = [name for name, _ in stages.in_order(scene_of(case).config)]
        first = {m.wanted.name: m.values for m in made}
        assert np.allclose(first["blocks.0.resid_pre"], 1.0, rtol=0, atol=1e-12)
        earlier = names[: names.index("blocks.0.resid_pre")]
        assert all(not first[x].any() for x in earlier if x in first)
