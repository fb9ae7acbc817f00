"""A batch is its examples one by one, whatever the model."""

from collections.abc import Iterator

import numpy as np
import pytest

import runs
from compute.types import DType
from oracle.configs import Case

BATCHED = [seed for seed in range(160) if len(runs.shape_of(runs.case_of(seed))) == 2]
AXES = {"tensor": 2, "token_ids": 1, "position_ids": 1, "key_mask": 1, "attention_mask": 2}
"""How many axes an input has without its batch axis."""


def singles(case: Case) -> Iterator[Case]:
    """Each example of a batch as a case without a batch axis."""
    for element in range(runs.shape_of(case)[0]):
        own = {
            name: value[element] if value.ndim > AXES[name] else value
            for name, value in case.inputs.items()
        }
        yield Case(case.seed, case.config, case.weights, own)


def of_three(seed: int) -> Case:
    """A case with a batch of three; its examples repeat or drop those it was drawn with."""
    case = runs.case_of(seed)
    order = np.arange(3) % runs.shape_of(case)[0]
    inputs = {
        name: value[order] if value.ndim > AXES[name] else value
        for name, value in case.inputs.items()
    }
    inputs |= (
        {"tensor": inputs["tensor"] + np.arange(3)[:, None, None]} if "tensor" in inputs else {}
    )
    return Case(seed, case.config, case.weights, inputs)


@pytest.mark.parametrize(
    ("dtype", "allowed"),
    # a batch is one larger product, whose sums may be rounded in another order
    [("float64", 1e-13), ("float32", 1e-5)],
)
def test_a_batch_of_three_is_its_three_examples(dtype: DType, allowed: float) -> None:
    for seed in BATCHED:
        case = of_three(seed)
        together = runs.states(runs.run_of_case(case, dtype=dtype, select=runs.every_stage(case)))
        for element, single in enumerate(singles(case)):
            alone = runs.states(
                runs.run_of_case(single, dtype=dtype, select=runs.every_stage(single))
            )
            apart = {
                name: runs.relative_error(values[element], alone[name].astype(np.float64))
                for name, values in together.items()
            }
            assert together.keys() == alone.keys()
            assert {name: e for name, e in apart.items() if e > allowed} == {}, (seed, element)


def test_the_batches_meet_every_variant() -> None:
    configs = [runs.case_of(seed).config for seed in BATCHED]
    assert {config["position"]["kind"] for config in configs} == {
        *("none", "sinusoidal", "learned", "rope", "alibi")
    }
    assert {config["norm"].get("placement") for config in configs} == {None, "pre", "post"}
    inputs = [runs.case_of(seed).inputs for seed in BATCHED]
    for name in ("key_mask", "attention_mask", "position_ids"):
        axes = {values[name].ndim for values in inputs if name in values}
        assert axes == {AXES[name], AXES[name] + 1}


def test_a_batch_of_one_has_a_batch_axis() -> None:
    case = of_three(BATCHED[0])
    first = {n: v[:1] if v.ndim > AXES[n] else v for n, v in case.inputs.items()}
    made = runs.states(runs.run_of_case(Case(0, case.config, case.weights, first)))
    assert {values.shape[0] for values in made.values()} == {1}
