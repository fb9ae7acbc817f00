"""Interventions: what becomes of a slice is worked out by hand, what follows by the reference."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

import resumed
import runs
from changed_runs import (
    LONG,
    MANY,
    SHORT,
    cases_with,
    changeable,
    lengths,
    random_where,
    rows_case,
    scene_of,
    states,
)
from compute import interventions
from compute.trace import identities_of, trace
from compute.types import AXES, DType, Intervened
from oracle.configs import Case
from oracle.forward import trace as reference

DTYPES = pytest.mark.parametrize("dtype", ["float64", "float32"])
LETTERS = {word: letter for letter, word in AXES.items()}

EXACT = 1e-10
"""Hundreds of roundings of 1.1e-16, of a stream that may be small where a norm divides by it."""


# A stage set to what it is.


@DTYPES
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_stage_set_to_its_own_value_changes_no_bit_of_any_other(first: int, dtype: DType) -> None:
    for seed in range(first, first + 10):
        case = runs.case_of(seed)
        full = runs.states(runs.run_of_case(case, dtype=dtype))
        for name, _ in changeable(case):
            value = full[name]
            got = states(case, Intervened(stage=name, op="set", value=value), dtype=dtype)
            assert [x for x in full if got[x].tobytes() != full[x].tobytes()] == [], (seed, name)


@pytest.mark.parametrize("first", range(60, 150, 30))
def test_stage_patched_from_the_same_input_changes_no_bit(first: int) -> None:
    for seed in range(first, first + 30):
        case = runs.case_of(seed)
        full = runs.states(runs.run_of_case(case))
        asked = [Intervened(stage=name, op="patch", source=0) for name, _ in changeable(case)]
        got = states(case, *asked, donors={0: case})
        assert [x for x in full if got[x].tobytes() != full[x].tobytes()] == [], seed


# What becomes of a slice, by hand.

BY_HAND: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "zero": lambda x, value: 0 * np.nan_to_num(x, neginf=0.0),
    "scale": lambda x, value: value * x,
    "add": lambda x, value: x + value,
    "set": lambda x, value: value,
}


@DTYPES
@pytest.mark.parametrize("op", BY_HAND)
@pytest.mark.parametrize("whole", [False, True])
def test_slice_of_any_stage_becomes_what_the_operation_says(
    op: str, whole: bool, dtype: DType
) -> None:
    rng = np.random.default_rng(1)
    for seed in range(60):
        case = runs.case_of(seed)
        full = runs.states(runs.run_of_case(case, dtype=dtype))
        found = [name for name, stage in changeable(case) if stage.name != "ffn.experts"]
        name = found[rng.integers(len(found))]
        where, index = random_where(rng, lengths(case, name))
        expected = np.array(full[name])
        shape = expected[index].shape
        value = (rng.standard_normal(shape) if whole else rng.standard_normal(())).astype(dtype)
        given = None if op == "zero" else value
        expected[index] = BY_HAND[op](expected[index], value)
        got = states(case, Intervened(stage=name, op=op, where=where, value=given), dtype=dtype)  # type: ignore[arg-type]
        assert got[name].dtype == dtype
        assert np.array_equal(got[name], expected), (seed, name, where)


def test_mean_is_taken_over_the_positions_unless_other_axes_are_named() -> None:
    rng = np.random.default_rng(2)
    for seed in range(80):
        case = runs.case_of(seed)
        full = runs.states(runs.run_of_case(case))
        found = [name for name, stage in changeable(case) if stage.name != "ffn.experts"]
        name = found[rng.integers(len(found))]
        has = lengths(case, name)
        where, index = random_where(rng, has)
        words = [word for word in has if word != "1"]
        some = [word for word in words if rng.random() < 0.5]
        positions = [x for x in ("position", "key_position", "source_position") if x in has][:1]
        with np.errstate(invalid="ignore"):
            axes = tuple(list(has).index(word) for word in some or positions)
            mean = np.broadcast_to(full[name].mean(axis=axes, keepdims=True), full[name].shape)
        expected = np.array(full[name])
        expected[index] = mean[index]
        got = states(case, Intervened(stage=name, op="mean", where=where, over=tuple(some)))
        assert np.allclose(got[name], expected, rtol=1e-12, atol=1e-13, equal_nan=True), (
            seed,
            name,
        )


def test_changes_of_one_stage_are_made_in_their_order() -> None:
    case = runs.case_of(3)
    full = runs.states(runs.run_of_case(case))["blocks.0.resid_pre"]
    twice = Intervened(stage="blocks.0.resid_pre", op="scale", value=2.0)
    more = Intervened(stage="X", op="add", value=1.0, where={"block": (0,)})
    assert np.array_equal(states(case, twice, more)["blocks.0.resid_pre"], 2.0 * full + 1.0)
    assert np.array_equal(states(case, more, twice)["blocks.0.resid_pre"], 2.0 * (full + 1.0))


def test_no_stage_before_the_changed_one_moves() -> None:
    rng = np.random.default_rng(5)
    for seed in range(60):
        case = runs.case_of(seed)
        full = runs.states(runs.run_of_case(case))
        found = [name for name, stage in changeable(case) if stage.name != "ffn.experts"]
        name = found[rng.integers(len(found))]
        got = states(case, Intervened(stage=name, op="set", value=0.25))
        before = list(full)[: list(full).index(name)]
        moved = [x for x in before if got[x].tobytes() != full[x].tobytes()]
        # head_out is made of z, afterwards
        assert [x for x in moved if "head_out" not in x] == [], (seed, name)


# What follows, by the reference.


def near(got: Mapping[str, np.ndarray], exact: Mapping[str, np.ndarray], but: str = "") -> None:
    """Every stage of the reference that a run shows, less one that was changed."""
    there = {name: value for name, value in exact.items() if name in got}
    assert there
    for name, value in there.items():
        if name != but and name.removesuffix("head_out") + "z" != but:
            assert runs.relative_error(got[name], value, 1e-3) <= EXACT, name


@pytest.mark.parametrize("op", ["zero", "scale", "add", "set", "mean"])
def test_all_that_follows_a_changed_stream_is_what_the_reference_makes_of_it(op: str) -> None:
    rng = np.random.default_rng(7)
    for seed in range(60):
        case = runs.case_of(seed)
        layer = int(rng.integers(case.config["n_layers"]))
        name = f"blocks.{layer}.resid_pre"
        where, index = random_where(rng, lengths(case, name))
        stream = np.array(reference(case.config, case.weights, **case.inputs)[name])
        value = rng.standard_normal(stream[index].shape)
        if op == "mean":
            stream[index] = np.broadcast_to(stream.mean(axis=-2, keepdims=True), stream.shape)[
                index
            ]
        else:
            stream[index] = BY_HAND[op](stream[index], value)
        given = value if op in ("scale", "add", "set") else None
        asked = Intervened(stage=name, op=op, where=where, value=given)  # type: ignore[arg-type]
        near(states(case, asked), resumed.from_block(case, layer, stream))


def test_stream_patched_from_another_input_goes_on_as_that_inputs() -> None:
    rng = np.random.default_rng(8)
    for seed in range(60):
        case, other = runs.case_of(seed), with_other_rows(runs.case_of(seed), rng)
        layer = int(rng.integers(case.config["n_layers"]))
        name = f"blocks.{layer}.resid_pre"
        theirs = reference(other.config, other.weights, **other.inputs)
        got = states(case, Intervened(stage=name, op="patch", source=0), donors={0: other})
        exact = resumed.from_block(case, layer, theirs[name])
        near(got, exact)
        if "memory" not in case.inputs:
            near(got, {x: theirs[x] for x in exact})


def with_other_rows(case: Case, rng: np.random.Generator) -> Case:
    """The same masks and positions, other tokens or rows."""
    inputs = dict(case.inputs)
    if "tensor" in inputs:
        inputs["tensor"] = rng.standard_normal(inputs["tensor"].shape)
    else:
        inputs["token_ids"] = rng.integers(case.config["vocab"], size=inputs["token_ids"].shape)
    return replace(case, inputs=inputs)


def with_weights(case: Case, **changed: np.ndarray) -> Case:
    return replace(case, weights=case.weights | changed)


@pytest.mark.parametrize("kind", ["attn", "cross"])
def test_zeroed_head_is_a_head_whose_output_projection_is_zero(kind: str) -> None:
    rng = np.random.default_rng(11)
    for case in cases_with(f"{kind}.z"):
        layer = int(rng.integers(case.config["n_layers"]))
        head = int(rng.integers(case.config["attention"]["n_heads"]))
        name, matrix = f"blocks.{layer}.{kind}.z", f"blocks.{layer}.{kind}.W_O"
        without = np.array(case.weights[matrix])
        without[head] = 0.0
        silent = with_weights(case, **{matrix: without})
        got = states(case, Intervened(stage=name, op="zero", where={"head": (head,)}))
        near(got, reference(silent.config, silent.weights, **silent.inputs), but=name)


def test_scaled_values_are_those_of_scaled_weights() -> None:
    for case in cases_with("attn.v"):
        names = [x for x in ("blocks.0.attn.W_V", "blocks.0.attn.b_V") if x in case.weights]
        scaled = with_weights(case, **{name: 1.5 * case.weights[name] for name in names})
        got = states(case, Intervened(stage="blocks.0.attn.v", op="scale", value=1.5))
        near(got, reference(scaled.config, scaled.weights, **scaled.inputs))


def test_neuron_set_to_zero_is_a_neuron_that_nothing_reads() -> None:
    for case in cases_with("ffn.hidden"):
        without = np.array(case.weights["blocks.0.ffn.W_out"])
        without[1] = 0.0
        silent = with_weights(case, **{"blocks.0.ffn.W_out": without})
        asked = Intervened(stage="hidden", op="zero", where={"block": (0,), "d_ff": (1,)})
        exact = reference(silent.config, silent.weights, **silent.inputs)
        near(states(case, asked), exact, but="blocks.0.ffn.hidden")


@pytest.mark.parametrize("vector", ["attn.q", "attn.k", "attn.v"])
def test_vector_added_at_every_position_is_a_bias(vector: str) -> None:
    rng, letter = np.random.default_rng(13), vector[-1].upper()
    found = [x for x in cases_with(vector, 60) if f"blocks.0.attn.b_{letter}" in x.weights]
    assert len(found) > 5
    for case in found:
        bias = f"blocks.0.attn.b_{letter}"
        vectors = rng.standard_normal(case.weights[bias].shape)
        moved = with_weights(case, **{bias: case.weights[bias] + vectors})
        rows = tuple(lengths(case, f"blocks.0.{vector}").values())
        value = np.broadcast_to(vectors[:, None, :], rows)
        got = states(case, Intervened(stage=f"blocks.0.{vector}", op="add", value=value))
        near(got, reference(moved.config, moved.weights, **moved.inputs))


def test_pattern_that_is_set_mixes_the_values_as_written() -> None:
    rng = np.random.default_rng(17)
    for case in cases_with("attn.pattern", 40):
        exact = reference(case.config, case.weights, **case.inputs)
        has = lengths(case, "blocks.0.attn.pattern")
        pattern = rng.standard_normal(tuple(has.values()))
        got = states(case, Intervened(stage="blocks.0.attn.pattern", op="set", value=pattern))
        values, W_O = exact["blocks.0.attn.v"], case.weights["blocks.0.attn.W_O"]
        served = has["head"] // values.shape[-3]
        raw = np.zeros(exact["blocks.0.attn_out"].shape) + case.weights.get("blocks.0.attn.b_O", 0)
        for head in range(has["head"]):
            z = pattern[..., head, :, :] @ values[..., head // served, :, :]
            assert np.allclose(got["blocks.0.attn.z"][..., head, :, :], z, rtol=0, atol=1e-12)
            raw = raw + z @ W_O[head]
        own = got.get("blocks.0.attn.out_raw", got["blocks.0.attn_out"])
        assert np.allclose(own, raw, rtol=0, atol=1e-11)


def test_experts_that_are_set_are_those_that_are_run() -> None:
    for case in cases_with("ffn.experts", 12):
        has = lengths(case, "blocks.0.ffn.experts")
        chosen = np.broadcast_to(np.arange(has["choice"]), tuple(has.values()))
        got = states(case, Intervened(stage="blocks.0.ffn.experts", op="set", value=chosen * 1.0))
        assert got["blocks.0.ffn.experts"].dtype == np.int64
        assert np.array_equal(got["blocks.0.ffn.experts"], chosen)
        if case.config["ffn"]["renormalize"]:
            logits = got["blocks.0.ffn.router"][..., : has["choice"]]
            powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
            shares = powers / powers.sum(axis=-1, keepdims=True)
            assert np.allclose(got["blocks.0.ffn.expert_weights"], shares, rtol=0, atol=1e-12)


# Donors of other shapes.


def test_donor_of_another_length_gives_the_positions_that_both_have() -> None:
    case, other = rows_case(LONG), rows_case(SHORT)
    asked = Intervened(stage="blocks.0.resid_pre", op="patch", where={"position": (1,)}, source=4)
    got = states(case, asked, donors={4: other})["blocks.0.resid_pre"]
    theirs = runs.states(runs.run_of_case(other))["blocks.0.resid_pre"]
    own = runs.states(runs.run_of_case(case))["blocks.0.resid_pre"]
    assert np.array_equal(got[1], theirs[1])
    assert np.array_equal(got[[0, 2, 3, 4]], own[[0, 2, 3, 4]])


def test_donor_without_a_batch_serves_every_row() -> None:
    asked = Intervened(stage="blocks.0.resid_pre", op="patch", source=0)
    got = states(rows_case(MANY), asked, donors={0: rows_case(LONG)})["blocks.0.resid_pre"]
    theirs = runs.states(runs.run_of_case(rows_case(LONG)))["blocks.0.resid_pre"]
    assert np.array_equal(got[0], theirs)
    assert np.array_equal(got[1], theirs)


def test_mean_of_a_donors_batch_is_a_run_without_one() -> None:
    asked = Intervened(stage="z", op="mean", where={"block": (0,), "head": (0,)}, source=0)
    got = states(rows_case(LONG), asked, donors={0: rows_case(MANY)})["blocks.0.attn.z"]
    theirs = runs.states(runs.run_of_case(rows_case(MANY)))["blocks.0.attn.z"]
    assert np.allclose(got[0], (theirs[0, 0] + theirs[1, 0]) / 2, rtol=0, atol=1e-14)


def test_mean_of_a_donor_over_positions_may_be_of_any_length() -> None:
    asked = Intervened(stage="blocks.0.resid_pre", op="mean", over=("position",), source=0)
    got = states(rows_case(LONG), asked, donors={0: rows_case(SHORT)})["blocks.0.resid_pre"]
    theirs = runs.states(runs.run_of_case(rows_case(SHORT)))["blocks.0.resid_pre"]
    assert np.allclose(got, theirs.mean(axis=0), rtol=0, atol=1e-14)


def test_donors_needed_are_told_with_the_stages_they_bring() -> None:
    asked = [
        Intervened(stage="blocks.0.resid_pre", op="patch", source=2),
        Intervened(stage="blocks.0.attn.z", op="patch", source=2),
        Intervened(stage="blocks.0.attn.v", op="mean", source=5),
        Intervened(stage="blocks.0.attn.v", op="zero"),
    ]
    changes = interventions.resolve(asked, scene_of(rows_case(LONG)))
    assert interventions.needed(changes) == {
        2: {"blocks.0.resid_pre", "blocks.0.attn.z"},
        5: {"blocks.0.attn.v"},
    }


# What is meant.


def test_bare_name_means_every_block_and_where_narrows_it() -> None:
    case = next(c for c in map(runs.case_of, range(200)) if c.config["n_layers"] == 3)
    scene = scene_of(case)
    every = interventions.resolve([Intervened(stage="Z", op="zero")], scene)
    assert [x.name for x in every] == [f"blocks.{n}.resid_post" for n in range(3)]
    some = [Intervened(stage="hook_resid_pre", op="zero", where={"block": (-1, 0)})]
    assert [x.name for x in interventions.resolve(some, scene)] == [
        "blocks.0.resid_pre",
        "blocks.2.resid_pre",
    ]


def test_wildcard_passes_over_what_cannot_be_changed() -> None:
    case = rows_case(LONG)
    asked = [Intervened(stage="blocks.0.attn.*", op="scale", value=1.0)]
    names = [change.stage.name for change in interventions.resolve(asked, scene_of(case))]
    assert "attn.z" in names
    assert "attn.head_out" not in names


def test_indices_are_counted_from_the_start() -> None:
    asked = [Intervened(stage="blocks.0.attn.z", op="zero", where={"position": (-1, 0)})]
    (change,) = interventions.resolve(asked, scene_of(rows_case(LONG)))
    assert change.where == {"n": (4, 0)}


# What ties the states of a changed run together.


@pytest.mark.parametrize("first", range(0, 90, 30))
def test_no_identity_fails_for_a_stage_that_was_changed(first: int) -> None:
    rng = np.random.default_rng(first)
    for seed in range(first, first + 30):
        case = runs.case_of(seed)
        scene = scene_of(case)
        found = [name for name, stage in changeable(case) if stage.name != "ffn.experts"]
        for name in rng.choice(found, min(4, len(found)), replace=False):
            changes = interventions.resolve([Intervened(stage=name, op="add", value=0.7)], scene)
            run = runs.run_of_case(case, patches=interventions.patches(changes, {}))
            checked = identities_of(trace(run))
            assert [one.name for one in checked if one.holds is False] == [], (seed, name)


def test_sum_over_blocks_does_not_hold_across_a_changed_stream() -> None:
    case = next(
        x
        for x in cases_with("resid_mid", 40)
        if x.config["norm"].get("placement") == "pre" and x.config["n_layers"] > 1
    )
    for stage in ("blocks.0.resid_mid", "blocks.1.resid_pre", "blocks.0.resid_post"):
        changes = interventions.resolve([Intervened(stage=stage, op="zero")], scene_of(case))
        run = runs.run_of_case(case, patches=interventions.patches(changes, {}))
        told = {one.name: one.reason for one in identities_of(trace(run))}
        assert told["expansion"] == f"patched: {stage}"
