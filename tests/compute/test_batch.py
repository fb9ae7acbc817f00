"""A batch is its examples one by one, whatever the model."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import runs
from cases import small
from compute.types import DType
from oracle.configs import Case

BATCHED = [seed for seed in range(160) if len(runs.shape_of(runs.case_of(seed).inputs)) == 2]
AXES = {
    "tensor": 2,
    "token_ids": 1,
    "position_ids": 1,
    "key_mask": 1,
    "attention_mask": 2,
    "token_types": 1,
}
"""How many axes an input has without its batch axis."""


def taken(inputs: Mapping[str, Any], rows: int | np.ndarray) -> dict[str, Any]:
    """One example of a batch, or several in an order; what they share stays, the memory's too."""
    own = {name: value for name, value in inputs.items() if name != "memory"}
    made = {n: value[rows] if value.ndim > AXES[n] else value for n, value in own.items()}
    memory = inputs.get("memory")
    return made if memory is None else made | {"memory": taken(memory, rows)}


def with_inputs(case: Case, inputs: dict[str, Any]) -> Case:
    return Case(case.seed, case.config, case.weights, inputs)


def singles(case: Case) -> Iterator[Case]:
    """Each example of a batch as a case without a batch axis."""
    for element in range(runs.shape_of(case.inputs)[0]):
        yield with_inputs(case, taken(case.inputs, element))


def of_three(seed: int) -> Case:
    """A case with a batch of three; its examples repeat or drop those it was drawn with."""
    case = runs.case_of(seed)
    return with_inputs(case, told_apart(taken(case.inputs, np.arange(3) % batch_of(case))))


def batch_of(case: Case) -> int:
    return int(runs.shape_of(case.inputs)[0])


def told_apart(inputs: dict[str, Any]) -> dict[str, Any]:
    """Rows that differ from one example to the next, the memory's too."""
    made = dict(inputs)
    if "tensor" in made:
        made["tensor"] = made["tensor"] + np.arange(3)[:, None, None]
    if "memory" in made:
        made["memory"] = told_apart(made["memory"])
    return made


def every_state(case: Case, dtype: DType) -> dict[str, np.ndarray]:
    return runs.states(runs.run_of_case(case, dtype=dtype, select=runs.every_stage(case)))


@pytest.mark.parametrize(
    ("dtype", "allowed"),
    # a batch is one larger product, whose sums may be rounded in another order
    [("float64", 1e-13), ("float32", 1e-5)],
)
def test_a_batch_of_three_is_its_three_examples(dtype: DType, allowed: float) -> None:
    for seed in BATCHED:
        case = of_three(seed)
        together = every_state(case, dtype)
        for element, single in enumerate(singles(case)):
            alone = every_state(single, dtype)
            apart = {
                name: runs.relative_error(values[element], alone[name].astype(np.float64))
                for name, values in together.items()
            }
            assert together.keys() == alone.keys()
            assert {name: e for name, e in apart.items() if e > allowed} == {}, (seed, element)


@pytest.mark.parametrize(("dtype", "allowed"), [("float64", 1e-13), ("float32", 1e-5)])
def test_a_batch_in_another_order_is_the_same_in_that_order(dtype: DType, allowed: float) -> None:
    order = np.array([2, 0, 1])
    for seed in BATCHED:
        case = of_three(seed)
        before = every_state(case, dtype)
        after = every_state(with_inputs(case, taken(case.inputs, order)), dtype)
        apart = {
            name: runs.relative_error(values, before[name][order].astype(np.float64))
            for name, values in after.items()
        }
        assert {name: e for name, e in apart.items() if e > allowed} == {}, seed


def test_the_batches_meet_every_variant() -> None:
    configs = [runs.case_of(seed).config for seed in BATCHED]
    assert {config["position"]["kind"] for config in configs} == {
        *("none", "sinusoidal", "learned", "rope", "alibi", "t5_bias")
    }
    assert {config["norm"].get("placement") for config in configs} == {
        *(None, "pre", "post", "sandwich", "output")
    }
    assert {config["ffn"]["kind"] for config in configs} == {"none", "mlp", "gated", "moe"}
    assert {config["topology"] for config in configs} == {"sequential", "parallel"}
    scalings = {config["position"].get("scaling", {}).get("kind") for config in configs}
    assert scalings == {None, "none", "linear", "dynamic", "yarn", "llama3"}
    inputs = [runs.case_of(seed).inputs for seed in BATCHED]
    for name in ("key_mask", "attention_mask", "position_ids", "token_types"):
        axes = {values[name].ndim for values in inputs if name in values}
        assert axes == {AXES[name], AXES[name] + 1}
    memories = [values["memory"] for values in inputs if "memory" in values]
    for name in ("token_ids", "tensor", "position_ids", "attention_mask"):
        assert any(name in memory for memory in memories), name
    assert {memory["key_mask"].ndim for memory in memories if "key_mask" in memory} == {1, 2}


def test_each_example_stretches_its_rotations_by_its_own_length() -> None:
    dynamic = {"kind": "dynamic", "factor": 4.0, "original_positions": 4}
    config = small.model(5, attention=small.attention(1, 6), position=small.rope(6))
    config["position"] |= {"scaling": dynamic}
    named = small.drawn(config, 0)
    rows = np.broadcast_to(np.random.default_rng(0).standard_normal((3, 5)), (2, 3, 5))
    ids = [[0, 1, 2], [0, 1, 20]]
    q = small.stages_of(small.run(config, named, tensor=rows, position_ids=ids))["attn.q_rot"]
    plain = config | {"position": small.rope(6)}
    near = small.stages_of(small.run(plain, named, tensor=rows[0]))["attn.q_rot"]
    assert q[0].tolist() == near.tolist()  # within what it was trained on nothing is stretched
    assert q[1, :, 0].tolist() == near[:, 0].tolist()  # position 0 never turns
    assert not np.allclose(q[1, :, 1], near[:, 1])


def test_a_batch_of_one_has_a_batch_axis() -> None:
    case = of_three(BATCHED[0])
    first = taken(case.inputs, np.array([0]))
    made = runs.states(runs.run_of_case(with_inputs(case, first)))
    assert {values.shape[0] for values in made.values()} == {1}
