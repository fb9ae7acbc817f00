"""What the runs of a question about interventions cost together, before any of them is run."""

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from compute import cost, selection, stages
from compute.config import ModelConfig
from compute.cost import BYTES, Cost
from compute.interventions.intervened import Part, Question
from compute.selection import Scene, Selection, Wanted, scene_for

_COPIES = 3
"""Of a changed stage: its patch's, the driver's, and a mean's in float64."""


def estimate(question: Question, dtype: str) -> Cost:
    """The cost of all runs: products of each; what is kept of all of them, at once; the largest
    temporaries of one. elements: those of the shown run, and as many each of before and delta."""
    scene = scene_for(question.config, question.inputs)
    shown = cost.estimate(scene, question.selection, dtype)
    each = [_of_run(part, question.config, dtype) for part in _parts(question)]
    times = 3 if question.changes and question.clean else 1
    return replace(
        shown,
        flops=sum(one.flops for one in each),
        elements=times * shown.elements,
        weight_bytes=max(one.weight_bytes for one in each),
        kept_bytes=sum(one.kept_bytes for one in each) + _beside(question, scene, dtype),
        work_bytes=max(one.work_bytes for one in each),
    )


def _parts(question: Question) -> Iterator[Part]:
    yield question.of_shown()
    yield from question.of_donors().values()
    for part in (question.of_clean(), question.of_other()):
        if part is not None:
            yield part


def _of_run(part: Part, config: ModelConfig, dtype: str) -> Cost:
    """The cost of a run that keeps some stages beside its selection."""
    needed = selection.kept_stages(part.selection, config)
    beside = [Wanted(name, stages.find(name), {}, False) for name in sorted(part.also - needed)]
    kept = Selection((*part.selection.wanted, *beside), {})
    return cost.estimate(scene_for(config, part.inputs), kept, dtype)


def _beside(question: Question, scene: Scene, dtype: str) -> int:
    """Bytes of the differences, and of the copies that a changed stage needs at once."""
    wanted = question.selection.wanted if question.changes and question.clean else ()
    differing = sum(cost.sliced_elements(w, scene.lengths_of(w.name)) for w in wanted)
    names = {change.name for change in question.changes}
    largest = max((_size(name, scene) for name in names), default=0)
    return BYTES[dtype] * differing + BYTES["float64"] * _COPIES * largest


def _size(name: str, scene: Scene) -> int:
    lengths = scene.lengths_of(name)
    return prod(lengths[x] for x in stages.axes_of(stages.find(name), "b" in lengths))
