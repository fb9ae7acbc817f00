"""Gradients of a logit less another are PyTorch's, on every family's model and every option's."""

from functools import cache

import numpy as np
import pytest
from safetensors.numpy import load_file

from compute import selection, weights
from compute.checkpoints import folder as folders
from compute.config import ModelConfig
from compute.derivatives.asking import stages_of
from compute.derivatives.gradients import gradients
from compute.derivatives.pulling import Point
from compute.measures import Measure
from compute.types import DType, Inputs, Selected
from compute.weights import ModelWeights
from parity import options, references
from parity.references import HERE, Arrays, Reference

NEAR: dict[DType, float] = {"float64": 1e-13, "float32": 1e-5}
"""Relative to the largest of each: twice the roundings of a run, some ten of each dtype's."""

BLOOM = 1e-9
"""Its gelu has the root of 2/π as 0.79788456."""

FIRST_ROW = {"roberta": 2}


@cache
def theirs() -> dict[str, Arrays]:
    """Folder -> its values, by name."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for name, values in load_file(HERE / "gradients.safetensors").items():
        folder, _, value = name.partition("/")
        found.setdefault(folder, {})[value] = values
    return dict(found)


def plain(folder: str) -> Reference:
    return next(each for each in references.references(folder) if each.run == "plain")


def ours(folder: str, dtype: DType) -> tuple[ModelConfig, ModelWeights, Inputs]:
    """The model of a folder, and the input of its plain run."""
    given = plain(folder).given
    if folder.startswith("option-"):
        config, named = options.option(folder)
        built = weights.build(config, lambda tensor: named[tensor.name], dtype)
        return config, built, references.inputs_of(given)
    checkpoint = folders.load(HERE / folder)
    built = weights.build(checkpoint.config, checkpoint.source(), dtype)
    first_row = FIRST_ROW.get(checkpoint.family, 0)
    return checkpoint.config, built, references.inputs_of(given, first_row=first_row)


def apart(folder: str, dtype: DType) -> dict[str, float]:
    """How far each gradient is off, relative to its largest."""
    config, built, inputs = ours(folder, dtype)
    values = dict(theirs()[folder])
    direction = values.pop("direction")
    scene = selection.scene_for(config, inputs)
    stage = "logits" if scene.absence("logits") is None else last(config)
    measure = Measure(stage, inputs.positions - 1, 0, direction)
    names = {references.stage_of(value): value for value in values}
    asked = stages_of(scene, [Selected(name=name) for name in names], measure, ())
    found = gradients(Point(config, built, inputs), scene, measure, asked.wanted)
    assert len(found.made) == len(names)
    return {
        each.wanted.name: off(each.gradient, values[names[each.wanted.name]]) for each in found.made
    }


def last(config: ModelConfig) -> str:
    return f"blocks.{config.n_layers - 1}.resid_post"


def off(one: np.ndarray, other: np.ndarray) -> float:
    assert one.shape == other.shape
    largest = float(np.abs(other).max())
    distance = float(np.abs(one - other).max())
    return distance / largest if largest else distance


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("folder", sorted(theirs()))
def test_gradients_are_pytorchs(folder: str, dtype: DType) -> None:
    allowed = max(NEAR[dtype], BLOOM) if folder == "option-bloom" else NEAR[dtype]
    assert {name: x for name, x in apart(folder, dtype).items() if not x <= allowed} == {}


def test_every_family_and_option_with_a_plain_run_is_compared() -> None:
    """But for the folders that hold another's weights, and those of torch's own layers."""
    copies = (*references.PARENTS, "llama-float16", "llama-bfloat16")
    there = {
        folder
        for folder in references.folders()
        if not folder.endswith("-classic")
        and folder not in copies
        and not folder.startswith("option-torch-")
    }
    assert there == set(theirs())
