"""Questions about contributions, asked of a run of compute."""

from compute import selection
from compute.contributions.answer import At
from compute.contributions.contribute import contributions
from compute.contributions.question import Question, resolve
from compute.contributions.splits import By
from compute.trace import Run

SPLITS: tuple[By, ...] = ("block", "sublayer", "head", "source", "neuron", "bias")


def ask(run: Run, **asked: object) -> list[At]:
    """The answers at the rows asked about."""
    resolved = resolve(Question(**asked), scene_of(run))  # type: ignore[arg-type]
    return list(contributions(resolved, run.weights, run.inputs, lambda: None))


def scene_of(run: Run) -> selection.Scene:
    return selection.scene_for(run.config, run.inputs)
