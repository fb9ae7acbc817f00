"""Interventions that cannot be made: each is refused at its place, with all others."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import runs
from changed_runs import LONG, MANY, RNG, SHORT, cases_with, rows_case, scene_of
from compute import interventions
from compute.errors import InterventionError
from compute.types import Intervened

Z = "blocks.0.attn.z"
REFUSED: Mapping[str, tuple[Intervened, str, tuple[object, ...]]] = {
    "unknown stage": (Intervened(stage="nothing", op="zero"), "unknown_stage", ("stage",)),
    "derived stage": (Intervened(stage="attn.head_out", op="zero"), "read_only", ("stage",)),
    "dots": (Intervened(stage="attn.dots", op="zero"), "read_only", ("stage",)),
    "sources": (Intervened(stage="attn.source_out", op="zero"), "read_only", ("stage",)),
    "sink": (Intervened(stage="attn.sink", op="zero"), "read_only", ("stage",)),
    "absent stage": (Intervened(stage="cross.z", op="zero"), "stage_absent", ("stage",)),
    "absent embedding": (Intervened(stage="embed", op="zero"), "stage_absent", ("stage",)),
    "wildcard of nothing": (Intervened(stage="cross.*", op="zero"), "stage_absent", ("stage",)),
    "wildcard that meets none": (Intervened(stage="q*q", op="zero"), "unknown_stage", ("stage",)),
    "no such axis": (
        Intervened(stage=Z, op="zero", where={"d_ff": (0,)}),
        "no_such_axis",
        ("where", "d_ff"),
    ),
    "no such index": (
        Intervened(stage=Z, op="zero", where={"position": (0, 5)}),
        "index_out_of_range",
        ("where", "position", 1),
    ),
    "index twice": (
        Intervened(stage=Z, op="zero", where={"position": (4, -1)}),
        "index_twice",
        ("where", "position"),
    ),
    "no such block": (
        Intervened(stage="z", op="zero", where={"block": (9,)}),
        "index_out_of_range",
        ("where", "block", 0),
    ),
    "block of the model": (
        Intervened(stage="final_norm.out", op="zero", where={"block": (0,)}),
        "no_such_axis",
        ("where", "block"),
    ),
    "block twice": (
        Intervened(stage="z", op="zero", where={"block": (0, 0)}),
        "index_twice",
        ("where", "block"),
    ),
    "no value": (Intervened(stage=Z, op="set"), "value_needed", ()),
    "value of zero": (Intervened(stage=Z, op="zero", value=1.0), "value_unused", ("value",)),
    "no donor": (Intervened(stage=Z, op="patch"), "from_needed", ()),
    "donor of set": (
        Intervened(stage=Z, op="set", value=1.0, source=0),
        "from_unused",
        ("from",),
    ),
    "over of patch": (
        Intervened(stage=Z, op="patch", source=0, over=("position",)),
        "over_unused",
        ("over",),
    ),
    "over no axis": (
        Intervened(stage="blocks.0.attn.v", op="mean", over=("position",)),
        "no_such_axis",
        ("over",),
    ),
    "over no batch": (Intervened(stage=Z, op="mean", over=("batch",)), "no_such_axis", ("over",)),
    "shape": (
        Intervened(stage=Z, op="set", value=np.zeros((2, 2)), where={"head": (0,)}),
        "shape_mismatch",
        ("value",),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_intervention_that_cannot_be_made_is_refused_at_its_place(name: str) -> None:
    asked, code, place = REFUSED[name]
    case = rows_case(LONG)
    if name == "block of the model":
        found = (runs.case_of(seed) for seed in range(200))
        case = next(c for c in found if c.config["final_norm"])
    fine = Intervened(stage="blocks.0.resid_pre", op="zero")
    with pytest.raises(InterventionError) as refused:
        interventions.resolve([fine, asked], scene_of(case))
    (fault,) = refused.value.faults
    assert (fault.code, fault.place) == (code, (1, *place)), fault.detail
    assert fault.detail.endswith(".")


def test_all_faults_come_at_once() -> None:
    asked = [one for one, _, _ in REFUSED.values() if one.stage != "final_norm.out"]
    with pytest.raises(InterventionError) as refused:
        interventions.resolve(asked, scene_of(rows_case(LONG)))
    assert {fault.place[0] for fault in refused.value.faults} == set(range(len(asked)))


def test_faults_beyond_a_hundred_are_not_looked_for() -> None:
    asked = [Intervened(stage=Z, op="zero", where={"position": tuple(range(9, 900))})] * 5
    with pytest.raises(InterventionError) as refused:
        interventions.resolve(asked, scene_of(rows_case(LONG)))
    assert len(refused.value.faults) <= 200


def test_advice_of_a_derived_stage_names_what_to_change() -> None:
    asked = [Intervened(stage="attn.head_out", op="zero")]
    with pytest.raises(InterventionError) as refused:
        interventions.resolve(asked, scene_of(rows_case(LONG)))
    assert 'change attn.z with "where": {"head": [...]}' in refused.value.faults[0].detail


@pytest.mark.parametrize(
    ("op", "value", "code"),
    [
        ("zero", None, "whole_numbers"),
        ("scale", 2.0, "whole_numbers"),
        ("mean", None, "whole_numbers"),
        ("set", 0.5, "no_such_expert"),
        ("set", -1.0, "no_such_expert"),
        ("set", 1e6, "no_such_expert"),
        ("set", np.inf, "no_such_expert"),
    ],
)
def test_experts_are_whole_numbers_of_experts(op: str, value: float | None, code: str) -> None:
    case = cases_with("ffn.experts", 1)[0]
    asked = [Intervened(stage="blocks.0.ffn.experts", op=op, value=value)]  # type: ignore[arg-type]
    with pytest.raises(InterventionError) as refused:
        interventions.resolve(asked, scene_of(case))
    assert [fault.code for fault in refused.value.faults] == [code]


def test_one_expert_is_not_chosen_twice_for_a_token() -> None:
    case = next(x for x in cases_with("ffn.experts", 20) if x.config["ffn"]["top_k"] > 1)
    asked = [Intervened(stage="blocks.0.ffn.experts", op="set", value=0.0)]
    with pytest.raises(InterventionError) as refused:
        interventions.resolve(asked, scene_of(case))
    assert [fault.code for fault in refused.value.faults] == ["expert_twice"]


MISFITS = {
    "shorter": (LONG, SHORT, Intervened(stage=Z, op="patch", source=0)),
    "position it lacks": (
        LONG,
        SHORT,
        Intervened(stage=Z, op="patch", where={"position": (3,)}, source=0),
    ),
    "batch for none": (LONG, MANY, Intervened(stage=Z, op="patch", source=0)),
    "batch for none, over positions": (
        LONG,
        MANY,
        Intervened(stage=Z, op="mean", over=("position",), source=0),
    ),
    "batch of another size": (
        MANY,
        RNG.standard_normal((3, 5, 16)),
        Intervened(stage=Z, op="patch", source=0),
    ),
    "no batch to average": (
        LONG,
        LONG,
        Intervened(stage=Z, op="mean", over=("batch",), source=0),
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_donor_that_lacks_what_is_taken_from_it_is_refused(name: str) -> None:
    rows, theirs, asked = MISFITS[name]
    scene, donor = scene_of(rows_case(rows)), scene_of(rows_case(theirs))
    changes = interventions.resolve([asked], scene)
    with pytest.raises(InterventionError) as refused:
        interventions.check_donors(changes, scene, {0: donor})
    assert {fault.place for fault in refused.value.faults} == {(0, "from")}
    assert {fault.code for fault in refused.value.faults} <= {"donor_mismatch", "no_batch"}


def test_donor_of_rows_has_no_embedding_to_give() -> None:
    case = next(x for x in map(runs.case_of, range(200)) if "token_ids" in x.inputs)
    d = case.config["d_model"]
    rows = {"tensor": np.ones((*case.inputs["token_ids"].shape, d))}
    others = {key: case.inputs[key] for key in ("memory",) if key in case.inputs}
    donor = scene_of(replace(case, inputs=rows | others))
    changes = interventions.resolve(
        [Intervened(stage="embed", op="patch", source=0)], scene_of(case)
    )
    with pytest.raises(InterventionError) as refused:
        interventions.check_donors(changes, scene_of(case), {0: donor})
    assert [fault.code for fault in refused.value.faults] == ["stage_absent"]
