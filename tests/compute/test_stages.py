"""The catalogue against what is traced: axes, existence, and one meaning for each spelling."""

from collections import defaultdict

import numpy as np
import pytest

import runs
from cases import small
from compute import config_json, stages
from compute.config import ModelConfig
from compute.model import model
from compute.types import Inputs, Selected
from oracle.configs import Case

SEEDS = range(500)
CHUNKS = pytest.mark.parametrize("first", range(0, 500, 100))


def config_of(case: Case) -> ModelConfig:
    return config_json.from_json(case.config)


def lengths_of(case: Case) -> dict[str, int]:
    *batch, rows = runs.shape_of(case)
    return stages.dimensions(config_of(case), rows, batch[0] if batch else None)


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
def test_each_traced_shape_is_that_of_its_axes(first: int) -> None:
    for seed in range(first, first + 100):
        case = runs.case_of(seed)
        lengths = lengths_of(case)
        batched = "b" in lengths
        traced = runs.states(runs.run_of_case(case, select=runs.every_stage(case)))
        expected = {
            name: tuple(lengths[axis] for axis in stages.axes_of(stages.find(name), batched))
            for name in traced
        }
        assert {name: value.shape for name, value in traced.items()} == expected, seed


def test_the_equations_yield_the_stages_the_catalogue_has_for_a_config() -> None:
    for seed in SEEDS:
        case = runs.case_of(seed)
        config, tokens = config_of(case), "token_ids" in case.inputs
        expected = {
            name
            for name, stage in stages.in_order(config.n_layers)
            if not stage.derived and stage.absent(config, tokens) is None
        }
        names = yielded(case)
        assert set(names) == expected, seed
        assert len(names) == len(set(names)), seed


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
    lengths = {*"bnmdhgkvfV1"}
    assert all(set(stage.axes) <= lengths for stage in stages.STAGES)


def test_names_and_layers_are_read_from_a_full_name() -> None:
    z = stages.BY_NAME["attn.z"]
    assert stages.full_name(z, 11) == "blocks.11.attn.z"
    assert stages.layer_of("blocks.11.attn.z") == 11
    assert stages.local_name("blocks.11.attn.z") == "attn.z"
    assert stages.find("blocks.11.attn.z") is z
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


@pytest.mark.parametrize(
    ("spelling", "config", "stage"),
    [
        ("hook_resid_mid", both(), "resid_mid"),
        ("hook_resid_mid", both(placement="post"), "attn_sum"),
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
    case = next(case for case in map(runs.case_of, SEEDS) if len(runs.shape_of(case)) == 2)
    inputs = Inputs(**case.inputs)
    assert (inputs.batch, inputs.positions) == runs.shape_of(case)
    assert Inputs(tensor=np.zeros((3, 5))).batch is None
