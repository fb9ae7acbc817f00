"""The catalogue against what is traced: axes, existence, and one meaning for each spelling."""

import re
from collections import defaultdict

import numpy as np
import pytest

import runs
from cases import small
from compute import config_json, selection, stages
from compute.config import ModelConfig
from compute.model import model
from compute.selection import Scene
from compute.types import AXES, DType, Inputs, Selected
from oracle.configs import Case

SEEDS = range(500)
CHUNKS = pytest.mark.parametrize("first", range(0, 500, 100))


def config_of(case: Case) -> ModelConfig:
    return config_json.from_json(case.config)


def scene_of(case: Case) -> Scene:
    return selection.scene_for(config_of(case), runs.inputs_of(case.inputs))


def yielded(case: Case) -> list[str]:
    """The stages the equations yield, heard by hand, without a driver."""
    run = runs.run_of_case(case)
    equations = model(run.config, run.weights, run.inputs)
    names = []
    try:
        name, value = next(equations)
        while True:
            names.append(name)
            name, value = equations.send(value)
    except StopIteration:
        return names


@CHUNKS
def test_each_traced_array_is_that_of_its_axes(first: int) -> None:
    for seed in range(first, first + 100):
        case = runs.case_of(seed)
        scene, expected = scene_of(case), {}
        traced = runs.states(runs.run_of_case(case, select=runs.every_stage(case)))
        for name in traced:
            lengths = scene.lengths_of(name)
            axes = stages.axes_of(stages.find(name), "b" in lengths)
            expected[name] = tuple(lengths[axis] for axis in axes)
        assert {name: value.shape for name, value in traced.items()} == expected, seed


DISTINCT = small.model(
    29,
    attention=small.attention(6, 7, n_kv_heads=3, d_value=11, qk_norm="head", sinks=True),
    ffn=small.moe(17, 13, 5, expert="gated", d_shared=19, shared_gate=True),
    norm=small.norm("rmsnorm"),
    position=small.rope(4),
) | {"cross_attention": True, "vocab": 31, "token_types": 8, "mlm_head": True}
DISTINCT_ENCODER = small.model(
    29,
    attention=small.attention(10, 12, n_kv_heads=5, d_value=3, sinks=True),
    ffn=small.moe(37, 41, 2, d_shared=43),
    norm=small.norm("rmsnorm", placement="sandwich"),
    position={"kind": "learned", "n_positions": 47},
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_axes_of_different_lengths_are_told_apart_in_both_stacks(dtype: DType) -> None:
    b, n, s = 2, 23, 9
    config = DISTINCT | {"encoder": DISTINCT_ENCODER}
    run = small.run(
        config,
        small.drawn(config, 0),
        dtype=dtype,
        token_ids=np.zeros((b, n), int),
        memory={"token_ids": np.zeros((b, s), int)},
    )
    axes = {
        "": {"b": b, "n": n, "m": n, "s": s, "h": 6, "g": 3, "k": 7, "v": 11, "f": 17, "e": 13}
        | {"c": 5, "d": 29, "p": 29, "V": 31, "1": 1},
        "encoder.": {"b": b, "n": s, "m": s, "h": 10, "g": 5, "k": 12, "v": 3, "f": 37, "e": 41}
        | {"c": 2, "d": 29, "1": 1},
    }
    for name, values in runs.states(run).items():
        lengths = axes[stages.stack_of(name)]
        letters = stages.axes_of(stages.find(name), True)
        assert values.shape == tuple(lengths[letter] for letter in letters), name
        assert values.dtype == ("int64" if name.endswith("ffn.experts") else dtype), name


def test_the_equations_yield_the_stages_the_catalogue_has_for_a_config() -> None:
    for seed in SEEDS:
        case = runs.case_of(seed)
        scene = scene_of(case)
        expected = {
            name
            for name, stage in stages.in_order(scene.config)
            if not stage.derived and scene.absence(name) is None
        }
        names = yielded(case)
        assert set(names) == expected, seed
        assert len(names) == len(set(names)), seed


def test_every_stage_of_the_catalogue_is_met_in_both_stacks_by_some_seed() -> None:
    met: dict[str, set[str]] = {"": set(), stages.ENCODER: set()}
    for seed in SEEDS:
        scene = scene_of(runs.case_of(seed))
        for name, _ in stages.in_order(scene.config):
            if scene.absence(name) is None:
                met[stages.stack_of(name)].add(stages.local_name(name))
    every = set(stages.BY_NAME)
    assert met[""] == every
    readout = {name for name in every if name.startswith(("mlm_", "logits"))}
    crossing = {name for name in every if name.startswith(("cross", "norm_cross", "resid_cross"))}
    assert met[stages.ENCODER] == every - readout - crossing


def test_an_encoders_stages_come_first_under_its_prefix() -> None:
    config = config_json.from_json(DISTINCT | {"encoder": DISTINCT_ENCODER, "n_layers": 2})
    names = [name for name, _ in stages.in_order(config)]
    theirs = [name for name in names if name.startswith("encoder.")]
    assert names[: len(theirs)] == theirs
    assert "encoder.blocks.0.attn.z" in theirs
    assert "encoder.blocks.1.attn.z" not in theirs
    assert "blocks.1.attn.z" in names


def test_a_derived_stage_exists_where_its_operands_do() -> None:
    for seed in SEEDS:
        config = config_of(runs.case_of(seed))
        for stage in filter(lambda stage: stage.derived, stages.STAGES):
            operands = [stages.BY_NAME[name] for name in stage.derived_from]
            exist = all(operand.absent(config, True) is None for operand in operands)
            assert (stage.absent(config, True) is None) == exist


def test_no_spelling_means_two_stages_under_a_config() -> None:
    for seed in SEEDS:
        config = config_of(runs.case_of(seed))
        meant = defaultdict(set)
        for stage in stages.STAGES:
            for name in stages.names_for(stage, config):
                meant[name].add(stage.name)
        assert {name: found for name, found in meant.items() if len(found) > 1} == {}, seed


def test_each_stage_is_listed_once_with_axes_of_the_glossary() -> None:
    names = [stage.name for stage in stages.STAGES]
    assert len(names) == len(set(names))
    assert {letter for stage in stages.STAGES for letter in stage.axes} <= set(AXES)


def test_names_and_layers_are_read_from_a_full_name() -> None:
    z = stages.BY_NAME["attn.z"]
    assert stages.full_name(z, 11) == "blocks.11.attn.z"
    assert stages.layer_of("blocks.11.attn.z") == 11
    assert stages.local_name("blocks.11.attn.z") == "attn.z"
    assert stages.find("blocks.11.attn.z") is z
    assert stages.full_name(z, 11, "encoder.") == "encoder.blocks.11.attn.z"
    assert stages.stack_of("encoder.blocks.11.attn.z") == "encoder."
    assert stages.stack_of("blocks.11.attn.z") == ""
    assert stages.layer_of("encoder.blocks.11.attn.z") == 11
    assert stages.local_name("encoder.blocks.11.attn.z") == "attn.z"
    assert stages.find("encoder.blocks.11.attn.z") is z
    assert stages.local_name("encoder.embed") == "embed"
    assert stages.layer_of("logits") is None
    assert stages.local_name("final_norm.out") == "final_norm.out"


# What an alias means depends on the config.


def both(norm: str = "layernorm", placement: str = "pre", **ffn: object) -> small.Config:
    normed = small.norm(norm, placement=placement)
    return small.model(5, attention=small.attention(2, 3), ffn=small.mlp(7, **ffn), norm=normed)


def means(spelling: str, config: small.Config) -> str:
    """The one stage of block 0 that a spelling selects."""
    run = small.run(
        config, small.values(config, {}), select=[Selected(name=spelling)], tensor=[[1.0] * 5]
    )
    (wanted,) = run.selection.wanted
    return wanted.name.removeprefix("blocks.0.")


GATED = {"kind": "gated", "bias": {"in": False, "gate": False, "out": False}}

EXPERTS = small.moe(7, 3, 2)


@pytest.mark.parametrize(
    ("spelling", "config", "stage"),
    [
        ("hook_resid_mid", both(), "resid_mid"),
        ("hook_resid_mid", both(placement="post"), "attn_sum"),
        ("hook_resid_mid", both(placement="sandwich"), "resid_mid"),
        ("hook_resid_post", both(placement="output"), "resid_post"),
        ("U", both(placement="sandwich"), "norm1.out"),
        ("ln1_post.hook_normalized", both(placement="sandwich"), "norm1_post.normalized"),
        ("ln2_post.hook_scale", both(placement="output"), "norm2_post.scale"),
        ("mlp.hook_expert_indices", both(**EXPERTS), "ffn.experts"),
        ("hook_resid_post", both(), "resid_post"),
        ("hook_resid_post", both(placement="post"), "ffn_sum"),
        ("hook_normalized_resid_post", both(placement="post"), "resid_post"),
        ("mlp.hook_pre", both(), "ffn.up"),
        ("mlp.hook_pre", both(**GATED), "ffn.gate"),
        ("hook_pre", both(**GATED), "ffn.gate"),
        ("mlp.hook_pre_linear", both(**GATED), "ffn.up"),
        ("mlp.hook_post", both(**GATED), "ffn.hidden"),
        ("ln1.hook_normalized", both(), "norm1.normalized"),
        ("ln1.hook_normalized", both("rmsnorm"), "norm1.normalized"),
        ("ln2.hook_normalized", both(), "norm2.normalized"),
        ("U", both(), "norm1.out"),
        ("F", both(), "norm2.out"),
        ("X", both(placement="post"), "resid_pre"),
        ("Y", both(placement="post"), "resid_mid"),
        ("Z", both(placement="post"), "resid_post"),
        ("A", both(), "attn.pattern"),
        ("H", both(), "attn.z"),
        ("hidden", both(), "ffn.hidden"),
        ("hook_result", both(), "attn.head_out"),
    ],
)
def test_an_alias_means_what_its_own_library_means_by_it(
    spelling: str, config: small.Config, stage: str
) -> None:
    assert means(spelling, config) == stage


def test_the_final_norm_has_an_alias_too() -> None:
    above = both() | {"vocab": 11, "final_norm": True}
    assert means("ln_final.hook_normalized", above) == "final_norm.normalized"


def test_inputs_say_how_long_they_are() -> None:
    case = next(case for case in map(runs.case_of, SEEDS) if len(runs.shape_of(case.inputs)) == 2)
    inputs = runs.inputs_of(case.inputs)
    assert (inputs.batch, inputs.positions) == runs.shape_of(case.inputs)
    assert Inputs(tensor=np.zeros((3, 5))).batch is None


LETTERS = {"epsilon", "sigma", "mu", "Delta"}
COMMANDS = {"mathrm", "cdot", "top", "sum", "sqrt", "hat", "odot", "_", ",", *LETTERS}


@pytest.mark.parametrize("stage", stages.STAGES, ids=lambda stage: stage.name)
def test_equation_is_well_formed_latex(stage: stages.Stage) -> None:
    assert {*re.findall(r"\\([A-Za-z]+|.)", stage.latex)} <= COMMANDS
    words = re.findall(r"\\mathrm\{((?:[^{}])*)\}", stage.latex)
    assert all("_" not in word.replace("\\_", "") for word in words)
    depth = 0
    for letter in stage.latex:
        depth += (letter == "{") - (letter == "}")
        assert depth >= 0
    assert depth == 0


@pytest.mark.parametrize("name", ["attn.scores", "cross.scores", "logits", "embed"])
def test_equation_has_the_same_parts_in_both_forms(name: str) -> None:
    stage = stages.BY_NAME[name]
    equation = stage.plain.partition(" (")[0] if name != "logits" else stage.plain
    for part in ("mask", "cap", "scale", "bias", "multiplier"):
        assert (part in equation) == (part in stage.latex), part


def test_glossary_has_the_axes_of_stages_and_the_batch() -> None:
    used = {letter for stage in stages.STAGES for letter in stage.axes} | {"b"}
    assert set(stages.GLOSSARY) == used
    assert {AXES[letter] for letter in AXES.keys() - used} == {"d_shared", "token_type", "bucket"}
