"""The seeded cases: they are valid, they meet every option often, their axes tell apart."""

from collections import Counter
from functools import cache

import numpy as np
import pytest

from compute import config_json, stages
from oracle.configs import Case, random_case
from oracle.forward import trace
from oracle.inputs import Inputs
from oracle.options import OPTIONS, options_of, rows_of

FIRST = range(400)
OFTEN = 5


@cache
def case_of(seed: int) -> Case:
    return random_case(seed)


def test_every_option_is_met_often() -> None:
    met = Counter(option for seed in FIRST for option in set(options_of(case_of(seed))))
    assert met.keys() <= OPTIONS
    assert {option: met[option] for option in sorted(OPTIONS) if met[option] < OFTEN} == {}


def test_the_same_seed_gives_the_same_case() -> None:
    seed = next(seed for seed in FIRST if "memory" in case_of(seed).inputs)
    one, again = random_case(seed), random_case(seed)
    assert one.config == again.config
    assert one.weights.keys() == again.weights.keys()
    assert all(np.array_equal(one.weights[name], again.weights[name]) for name in one.weights)
    assert flat(one.inputs).keys() == flat(again.inputs).keys()
    assert all(np.array_equal(flat(again.inputs)[name], x) for name, x in flat(one.inputs).items())


def flat(inputs: Inputs) -> dict[str, np.ndarray]:
    """The arrays of an input, the memory's too."""
    memory = {f"memory.{name}": array for name, array in inputs.get("memory", {}).items()}
    return {name: array for name, array in inputs.items() if name != "memory"} | memory


def test_a_config_is_what_compute_writes() -> None:
    for seed in FIRST:
        config = case_of(seed).config
        assert config_json.as_json(config_json.from_json(config)) == config


def existing(case: Case) -> dict[str, tuple[int, ...]]:
    """The stages that compute's catalogue says there are, in its order, with their shapes."""
    config = config_json.from_json(case.config)
    n, batched = rows_of(case.inputs)
    b = next(iter(case.inputs.values())).shape[0] if batched else None
    memory = case.inputs.get("memory")
    lengths = stages.dimensions(config, n, b, 0 if memory is None else rows_of(memory)[0])
    found = {}
    for name, stage in stages.in_order(config):
        read = memory if stages.stack_of(name) else case.inputs
        if stage.absent(stages.config_of(name, config), "token_ids" in read) is None:
            own = stages.lengths_of(name, config, lengths)
            found[name] = tuple(own[axis] for axis in stages.axes_of(stage, batched))
    return found


@pytest.mark.parametrize("seed", FIRST)
def test_a_trace_has_every_stage_of_the_catalogue_with_its_axes(seed: int) -> None:
    case = case_of(seed)
    traced = trace(case.config, case.weights, **case.inputs)
    assert {name: value.shape for name, value in traced.items()} == existing(case)
    for name, value in traced.items():
        assert value.dtype == (np.int64 if name.endswith("ffn.experts") else np.float64)
        assert name.endswith(".scores") or np.isfinite(value).all()


def test_stages_come_in_the_catalogues_order_where_no_norm_follows_a_sum() -> None:
    for seed in FIRST:
        case = case_of(seed)
        stacks = (case.config, case.config["encoder"] or case.config)
        if all(stack["norm"].get("placement") != "post" for stack in stacks):
            traced = trace(case.config, case.weights, **case.inputs)
            assert list(traced) == list(existing(case))


def test_no_two_axes_of_an_ungrouped_case_are_equally_long() -> None:
    for seed in FIRST:
        case = case_of(seed)
        config, inputs = case.config, case.inputs
        attention, ffn, position = (config[part] for part in ("attention", "ffn", "position"))
        lengths = [config["d_model"], config["vocab"], config["token_types"], rows_of(inputs)[0]]
        lengths += [attention.get(name) for name in ("n_heads", "d_head", "d_value")]
        lengths += [ffn.get(name) for name in ("d_ff", "n_experts", "d_shared")]
        lengths += [position.get(name) for name in ("n_positions", "n_buckets")]
        if ffn.get("top_k") != ffn.get("n_experts"):
            lengths.append(ffn["top_k"])
        if "memory" in inputs:
            lengths.append(rows_of(inputs["memory"])[0])
        known = [length for length in lengths if length not in (None, 0, 1)]
        assert len(known) == len(set(known))
