"""Rows after a past have the states that the reference gives them in one run over all rows."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import agreement
import decoders
import runs
from cases import small
from compute import config_json, decoding, inputs, positions, selection, stages, weights
from compute.checkpoints import folder
from compute.checkpoints.text import Text
from compute.decoding import Step
from compute.errors import InputError
from compute.trace import Run
from compute.types import DType, Inputs, Past, Selected
from oracle import forward
from oracle.configs import Case
from parity import references

MODELS = Path(__file__).resolve().parents[2] / "models"
ROWS = {"token_ids": 1, "position_ids": 1, "key_mask": 1, "token_types": 1}
"""Inputs whose last axis counts rows; `tensor` and `attention_mask` have one more after it."""


def caches(case: Case) -> bool:
    """Whether no row sees a later one."""
    return not runs.has_attention(case) or bool(case.config["attention"]["mask"] == "causal")


def exact(case: Case) -> bool:
    """Whether no block's frequencies follow the length."""
    own = [layer.get("scaling") for layer in case.config["layers"]]
    scalings = [case.config["position"].get("scaling"), *own]
    return not any(s and s["kind"] == "dynamic" for s in scalings)


CACHED = [seed for seed in range(220) if caches(runs.case_of(seed))]
EXACT = [seed for seed in CACHED if exact(runs.case_of(seed))]


def taken(inputs: Mapping[str, Any], start: int, end: int) -> dict[str, Any]:
    """The rows from start to end; the memory whole; masks of pairs up to the last of the rows."""
    made = dict(inputs)
    for name in ROWS.keys() & made.keys():
        made[name] = made[name][..., start:end]
    if "tensor" in made:
        made["tensor"] = made["tensor"][..., start:end, :]
    if "attention_mask" in made:
        made["attention_mask"] = made["attention_mask"][..., start:end, :end]
    return made


def cut_into(count: int, most: int) -> list[tuple[int, int]]:
    """(start, end) of pieces of at most so many rows; the last may be shorter."""
    return [(start, min(start + most, count)) for start in range(0, count, most)]


def steps_of(case: Case, most: int) -> Iterator[tuple[int, int, Step]]:
    """The steps of a case, so many rows at a time, each with what the one before has left."""
    past: Past | None = None
    for start, end in cut_into(runs.shape_of(case.inputs)[-1], most):
        rows = replace(runs.inputs_of(taken(case.inputs, start, end)), past=past)
        step = decoding.stepped(decoders.run_with(case, rows, every_stage(case, end - start)))
        yield start, end, step
        past = step.past


def every_stage(case: Case, count: int) -> list[Selected]:
    """All stages and dots, and source_out of each of the rows."""
    if not runs.has_attention(case):
        return [Selected(name="*")]
    sources = Selected(name="blocks.*.attn.source_out", where={"position": tuple(range(count))})
    return [*runs.EVERYTHING[:1], Selected(name="blocks.*.attn.dots"), sources]


def rows_of(name: str, whole: npt.NDArray[Any], start: int, end: int) -> npt.NDArray[Any]:
    """What a step of these rows should have of a stage that all rows have."""
    if stages.stack_of(name):
        return whole
    letters = stages.find(name).axes
    cuts = {"n": slice(start, end), "m": slice(0, end)}
    where = (..., *(cuts.get(letter, slice(None)) for letter in letters))
    return np.asarray(whole[where])


@pytest.mark.parametrize("seed", EXACT)
def test_token_by_token_and_in_pieces_every_stage_is_that_of_the_whole(seed: int) -> None:
    case = runs.case_of(seed)
    reference = forward.trace(case.config, case.weights, **case.inputs)
    if agreement.ties(reference, 1e-12):
        pytest.skip("two experts are as good as each other")
    scale = agreement.sizes(case.config, reference)
    for most in (1, 2):
        for start, end, step in steps_of(case, most):
            assert len(step.trace.made) > 3
            for made in step.trace.made:
                name = made.wanted.name
                size = max(scale[name], float(np.abs(finite(reference[name])).max(initial=0.0)))
                expected = rows_of(name, reference[name], start, end)
                apart = runs.relative_error(made.values, expected, size)
                assert apart <= 1e-12, (name, start, end)


def finite(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.asarray(values[np.isfinite(values)])


def test_the_cases_meet_every_kind_of_position_and_what_may_go_wrong_with_it() -> None:
    configs = [runs.case_of(seed).config for seed in EXACT]
    kinds = {config["position"]["kind"] for config in configs}
    assert kinds >= {"none", "sinusoidal", "learned", "rope", "alibi", "t5_bias"}
    attending = [config["attention"] for config in configs if runs_heads(config)]
    assert any(a["n_kv_heads"] < a["n_heads"] for a in attending)
    assert {a["qk_norm"] for a in attending} >= {"none", "head", "full"}
    for word in ("window", "softcap", "sinks"):
        assert any(a.get(word) for a in attending), word
    windowed = {c["position"]["kind"] for c in configs if runs_heads(c) and windows(c)}
    assert windowed >= {"none", "rope", "alibi", "t5_bias"}
    assert any(config["ffn"]["kind"] == "moe" for config in configs)
    assert any(config["cross_attention"] for config in configs)
    assert {config["topology"] for config in configs} == {"sequential", "parallel"}
    assert {config["norm"].get("placement") for config in configs} >= {
        *("pre", "post", "sandwich", "output")
    }
    given = [runs.case_of(seed).inputs for seed in EXACT]
    for word in ("key_mask", "attention_mask", "position_ids", "token_types"):
        assert any(word in one and len(runs.shape_of(one)) == 2 for one in given), word


def runs_heads(config: Mapping[str, Any]) -> bool:
    return bool(config["attention"]["kind"] != "none")


def windows(config: Mapping[str, Any]) -> bool:
    own = [layer.get("window") for layer in config["layers"]]
    return any(window is not None for window in (config["attention"]["window"], *own))


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("kind", decoders.POSITIONS)
def test_token_by_token_equals_the_whole_for_each_position_with_a_window_or_without(
    kind: str, window: int | None
) -> None:
    case = decoders.case_with(
        decoders.decoder(decoders.POSITIONS[kind], window), **decoders.LEFT_PADDED
    )
    whole = runs.states(runs.run_of_case(case))
    for start, end, step in steps_of(case, 1):
        for made in step.trace.made:
            if made.wanted.name in whole:
                expected = rows_of(made.wanted.name, whole[made.wanted.name], start, end)
                assert runs.relative_error(made.values, expected) <= 1e-12, made.wanted.name
    assert [step.past.positions for *_, step in steps_of(case, 3)] == [3, 6, 8]


@pytest.mark.parametrize("name", ["position_ids", "key_mask"])
def test_ids_and_masks_of_the_past_are_those_of_the_whole(name: str) -> None:
    case = decoders.case_with(
        decoders.decoder(decoders.POSITIONS["rope"], None), **decoders.LEFT_PADDED
    )
    *_, (_, _, last) = steps_of(case, 3)
    whole = runs.inputs_of(case.inputs)
    expected = {"position_ids": positions.ids_for(whole), "key_mask": whole.key_mask}
    np.testing.assert_array_equal(getattr(last.past, name), expected[name])


def test_greedy_continuation_is_the_whole_run_again_and_again() -> None:
    case = decoders.case_with(
        decoders.decoder(decoders.POSITIONS["rope"], 3), **decoders.LEFT_PADDED
    )
    run = decoders.run_with(case, runs.inputs_of(case.inputs), [Selected(name="logits")])
    steps = list(decoding.continued(run, 4, decoders.logits_of))
    ids, mask = case.inputs["token_ids"], case.inputs["key_mask"]
    for step in steps:
        made = step.trace.also["logits"]
        again = decoders.case_with(case.config, token_ids=ids, key_mask=mask)
        logits = runs.states(runs.run_of_case(again))["logits"]
        assert runs.relative_error(made, logits[:, -made.shape[1] :]) <= 1e-12
        ids = np.concatenate([ids, logits[:, -1:].argmax(axis=-1)], axis=1)
        mask = np.concatenate([mask, np.ones((2, 1), np.bool_)], axis=1)
    assert [step.past.positions for step in steps] == [8, 9, 10, 11, 12]


DYNAMIC = small.rope(4, scaling={"kind": "dynamic", "factor": 4.0, "original_positions": 5})


def test_dynamic_frequencies_are_the_exception_beyond_the_trained_length_and_it_is_said() -> None:
    case = decoders.case_with(decoders.decoder(DYNAMIC, None), token_ids=[3, 7, 1, 9, 4, 2, 8])
    reasons = []
    for start, end, step in steps_of(case, 1):
        cut = decoders.case_with(case.config, token_ids=case.inputs["token_ids"][:end])
        whole = runs.states(runs.run_of_case(cut))
        made = {one.wanted.name: one.values for one in step.trace.made}
        first, last = (f"blocks.{layer}.attn.pattern" for layer in (0, 1))
        assert runs.relative_error(made[first], whole[first][..., start:end, :]) <= 1e-12
        apart = runs.relative_error(made[last], whole[last][..., start:end, :])
        reasons.append(decoding.inexact(step.trace.run.config, step.past, end - start))
        assert apart <= 1e-12 if end <= 5 else apart > 1e-9  # real, not rounding
    assert reasons[:5] == [None] * 5
    assert ["beyond the 5 trained on" in (reason or "") for reason in reasons[5:]] == [True, True]


def test_one_run_without_a_past_is_exact_however_long() -> None:
    case = decoders.case_with(decoders.decoder(DYNAMIC, None), token_ids=[3, 7, 1, 9, 4, 2, 8])
    ((_, _, step),) = steps_of(case, 7)
    assert decoding.inexact(step.trace.run.config, step.past, 7) is None


def test_the_past_may_have_been_kept_in_the_other_dtype() -> None:
    case = decoders.case_with(
        decoders.decoder(decoders.POSITIONS["alibi"], None), token_ids=[3, 7, 1]
    )
    run = decoders.run_with(case, Inputs(token_ids=np.array([3, 7])), None)
    past = decoding.stepped(run).past
    after = decoders.run_with(case, Inputs(token_ids=np.array([1]), past=past), None, "float32")
    assert {made.values.dtype.name for made in decoding.stepped(after).trace.made} == {"float32"}


def test_a_model_without_attention_leaves_ids_alone_behind() -> None:
    config = small.model(4, ffn=small.mlp(6), norm=small.norm("layernorm"), vocab=11)
    case = decoders.case_with(config, token_ids=[1, 2, 3])
    *_, (_, _, step) = steps_of(case, 1)
    assert (step.past.keys, step.past.values) == ((), ())
    assert step.past.position_ids.tolist() == [0, 1, 2]


def test_rows_whose_keys_are_all_masked_so_far_count_from_the_first_that_is_not() -> None:
    past = Past(keys=(), values=(), position_ids=np.zeros(2, np.int64), key_mask=np.zeros(2, bool))
    mask = np.array([False, True, True])
    assert positions.ids_for(
        Inputs(token_ids=np.zeros(3, int), key_mask=mask, past=past)
    ).tolist() == [
        0,
        0,
        1,
    ]


def test_a_past_counts_in_the_shape_of_a_mask_of_pairs() -> None:
    case = decoders.case_with(
        decoders.decoder(decoders.POSITIONS["alibi"], None), token_ids=[3, 7, 1]
    )
    past = Past(keys=(), values=(), position_ids=np.arange(2))
    config = config_json.from_json(case.config)
    rows = Inputs(token_ids=np.arange(3), attention_mask=np.ones((3, 5), bool), past=past)
    assert inputs.check(rows, config) is rows
    with pytest.raises(InputError, match=r"\[3, 5\]"):
        inputs.check(replace(rows, attention_mask=np.ones((3, 3), bool)), config)


def test_largest_logits_come_first_and_of_equals_the_first() -> None:
    ids, shares = decoding.largest(np.array([1.0, 3.0, 3.0, 2.0]), 3)
    assert ids.tolist() == [1, 2, 3]
    exps = np.exp([3.0, 3.0, 2.0])
    np.testing.assert_allclose(shares, exps / np.exp([1.0, 3.0, 3.0, 2.0]).sum(), rtol=1e-15)


def run_of_shipped(name: str, dtype: DType) -> tuple[Text, Run]:
    """A shipped model's tokenizer and its run of nothing yet."""
    model = folder.load(MODELS / name)
    assert model.text is not None
    rows = Inputs(token_ids=np.zeros(1, np.int64))
    run = Run(
        config=model.config,
        weights=weights.build(model.config, model.source(), dtype),
        inputs=rows,
        selection=decoders.logits_of(selection.scene_for(model.config, rows)),
    )
    return model.text, run


def greedy(run: Run, ids: npt.NDArray[np.int64], steps: int) -> npt.NDArray[np.int64]:
    """(…, steps + 1): the tokens that follow; the last one is read off and not run."""
    ran = list(
        decoding.continued(replace(run, inputs=Inputs(token_ids=ids)), steps, decoders.logits_of)
    )
    written = [decoding.likeliest(step.trace.also["logits"]) for step in ran]
    for before, step in zip(written, ran[1:], strict=False):
        np.testing.assert_array_equal(step.trace.run.inputs.token_ids, before)
    return np.concatenate(written, axis=-1)


def test_letter_sort_sorts_by_greedy_continuation() -> None:
    text, run = run_of_shipped("letter-sort", "float32")
    words = ["CBACBA", "BBBAAA", "CACBAB"]
    written = greedy(run, text.encode(words, False).ids, 5)
    pieces = ["".join(str(text.piece(int(i))) for i in row) for row in written]
    assert pieces == ["".join(sorted(word)) for word in words]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_induction_repeats_what_it_has_seen(dtype: DType) -> None:
    _, run = run_of_shipped("induction", dtype)
    assert greedy(run, np.array([5, 12, 3, 9, 14, 7, 1, 5]), 4).tolist() == [12, 3, 9, 14, 7]


def causal_families() -> Iterator[references.Reference]:
    """The plain runs, in float64, of decoders that stand alone and whose frequencies are fixed."""
    for name in references.folders():
        if not name.startswith("option-") and (references.HERE / name / "config.json").exists():
            config = folder.load(references.HERE / name).config
            fixed = config.position.scaling.kind != "dynamic"
            if config.attention.mask == "causal" and config.encoder is None and fixed:
                found = references.references(name)
                yield from (r for r in found if (r.run, r.dtype) == ("plain", "float64"))


@pytest.mark.parametrize("reference", list(causal_families()), ids=str)
def test_token_by_token_gives_the_logits_of_transformers(reference: references.Reference) -> None:
    model = folder.load(references.HERE / reference.folder)
    built = weights.build(model.config, model.source(), "float64")
    given = references.inputs_of(reference.given)
    assert given.token_ids is not None
    past: Past | None = None
    for at in range(given.positions):
        rows = Inputs(token_ids=given.token_ids[:, at : at + 1], past=past)
        scene = selection.scene_for(model.config, rows)
        run = Run(
            config=model.config, weights=built, inputs=rows, selection=decoders.logits_of(scene)
        )
        step = decoding.stepped(run)
        past = step.past
        expected = reference.values["logits"][:, at : at + 1]
        apart = runs.relative_error(step.trace.also["logits"], expected)
        assert apart <= references.FLOAT64, at
