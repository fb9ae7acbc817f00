"""A trace with interventions: what is changed, measured and weighed before any weight is made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from compute import interventions
from compute.cost import Cost
from compute.interventions import intervened, intervened_cost
from compute.interventions.changing import Change
from compute.interventions.intervened import Effect, Found, Question
from compute.measures import Measure
from compute.selection import Scene
from compute.types import AXES, Inputs, Intervened
from schemas import interventions as asked_interventions
from schemas.trace import RunAsked
from service import limits
from service.forms import tensors as forms
from service.limits import Need
from service.modelled import Modelled, Weighted
from service.plans import weighed
from service.reading import Reading
from service.traced_limits import OF_SEVERAL
from service.traced_work import Work

_POINTER = 4 * len("/before/")
"""What a tensor that is not of `tensors` is called beside its name, each time it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Intervening:
    """A question within the limits, what it costs, whose model it is, what it reads."""

    question: Question
    cost: Cost
    weighted: Weighted
    reading: Reading


def asks(request: RunAsked) -> bool:
    """Whether a request needs more than one plain run."""
    return bool(request.interventions or request.measures)


def plan(request: RunAsked, model: Modelled) -> Intervening:
    """The question of a request, or the error that says why there is none.

    In this order: the input, the selection, limits of the one run, the other inputs, the
    interventions, the measures, limits of all runs, the weights.
    """
    read, work = weighed(request, model)
    question = question_of(request, model, read, work)
    cost = intervened_cost.estimate(question, request.dtype)
    return Intervening(question, cost, model.weights(check_all(cost, work, model)), read)


def check_all(cost: Cost, work: Work, model: Modelled) -> int:
    """The bytes of all runs and their answer; TooLarge beyond a limit."""
    need = need_of(cost, work)
    form = model.form if work.others else None
    return limits.check_need(need, work.dtype, model.settings, OF_SEVERAL, form)


def question_of(request: RunAsked, model: Modelled, read: Reading, work: Work) -> Question:
    """What is changed, by which other inputs, and measured, of a run that was looked at."""
    donors = _donors(request, model)
    return Question(
        config=model.config,
        inputs=read.inputs,
        selection=work.selected,
        changes=_changes(request, model, work.scene, donors),
        donors=donors,
        measures=_measures(request, model, work.scene),
        clean=request.clean,
        path=request.path,
    )


def shown(question: Question, found: Found) -> tuple[dict[str, object], dict[str, object]]:
    """The members of an answer that stand behind `tensors`, and those before `cost`."""
    config, before, after = question.config, found.before, found.after
    tensors: dict[str, object] = {"before": None, "delta": None}
    if before is not None:
        made = intervened.delta(before, after)
        pairs = ((m.wanted.name, forms.tensor(m.wanted, m.values, config)) for m in made)
        tensors = {
            "before": forms.Tensors(forms.of_trace(before)),
            "delta": forms.Tensors(pairs),
        }
    return tensors, {
        "interventions": [_change(change) for change in question.changes],
        "effects": [_effect(effect) for effect in found.effects],
    }


def _donors(request: RunAsked, model: Modelled) -> dict[int, Inputs]:
    """The other inputs, by the place of their interventions."""
    return {
        at: model.read(one.source, ("interventions", at, "from")).inputs
        for at, one in enumerate(request.interventions)
        if one.source is not None
    }


def _changes(
    request: RunAsked, model: Modelled, scene: Scene, donors: Mapping[int, Inputs]
) -> Sequence[Change]:
    asked = asked_interventions.to_compute(request.interventions, request.dtype)
    changes = interventions.resolve(_without_twins(asked, donors), scene)
    scenes = {at: model.scene(inputs) for at, inputs in donors.items()}
    interventions.check_donors(changes, scene, scenes)
    return changes


def _without_twins(
    asked: Sequence[Intervened], donors: Mapping[int, Inputs]
) -> Sequence[Intervened]:
    """The same interventions, of equal other inputs the first alone: it is run once."""
    first: dict[object, int] = {}
    chosen = {at: first.setdefault(_content(inputs), at) for at, inputs in donors.items()}
    return [one if one.source is None else replace(one, source=chosen[one.source]) for one in asked]


def _content(value: object) -> object:
    """What an input is, to be compared."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.name, value.tobytes()
    if isinstance(value, Inputs):
        return tuple(_content(getattr(value, each.name)) for each in fields(value))
    return value


def _measures(request: RunAsked, model: Modelled, scene: Scene) -> Sequence[Measure]:
    return [model.measure(one, scene, ("measures", at)) for at, one in enumerate(request.measures)]


def need_of(cost: Cost, work: Work) -> Need:
    """Of all runs; a difference of whole numbers has a sign that they have not."""
    once = sum(cost.by_stage.values())
    parts = [("tensors", once)]
    if cost.elements > once:
        parts += [("before", once), ("delta", once)]
    return Need(
        elements=cost.elements,
        bytes=cost.bytes,
        flops=cost.flops,
        parts=parts,
        text_bytes=len(parts) * (work.answer_at_most + _POINTER * len(cost.by_stage))
        + cost.elements,
    )


def _change(change: Change) -> Mapping[str, object]:
    where = {AXES[letter]: list(indices) for letter, indices in change.where.items()}
    return {"stage": change.name, "op": change.op, "where": where}


def _effect(effect: Effect) -> Mapping[str, object]:
    return {
        "before": effect.before,
        "total": _after(effect.before, effect.total),
        "direct": _after(effect.before, effect.direct),
    }


def _after(before: float, after: float | None) -> Mapping[str, object] | None:
    if after is None:
        return None
    return {"after": after, "delta": 0.0 if after == before else after - before}
