"""A measure by stages: the part of POST /v1/jacobian that answers `measure` and `gradients`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from compute import cost, stages
from compute.cost import BYTES
from compute.derivatives import asking
from compute.derivatives.asking import Asked
from compute.derivatives.gradients import Gradient, gradients
from compute.derivatives.price import Price, price
from compute.derivatives.pulling import Point
from compute.derivatives.routes import route
from compute.measures import Measure
from compute.selection import Scene, Wanted
from compute.types import AXES, Array
from schemas.jacobian import JacobianRequest
from service import errors, views
from service.forms import tensors
from service.forms.tensors import Shown
from service.limits import Need
from service.modelled import Modelled, Weighted
from service.reading import Reading

View = Mapping[str, object]

_ADVICE = "Ask for fewer stages in gradients or for slices of them, or send a shorter input."
_TOLD = 2  # the gradient, and the attribution


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A question before anything is run."""

    model: Modelled
    reading: Reading
    scene: Scene
    measure: Measure
    chosen: Asked
    priced: Price
    need: Need
    advice: str = _ADVICE

    def answer(self, weighted: Weighted) -> View:
        """The members of the answer."""
        model, measure = self.model, self.measure
        point = Point(model.config, weighted.weights, self.reading.inputs, model.check)
        found = gradients(point, self.scene, measure, self.chosen.wanted)
        return {
            "measure": {
                "stage": measure.stage,
                "position": measure.position,
                "batch": measure.batch,
                "value": found.value,
            },
            "gradients": tensors.Tensors(
                (x.wanted.name, _tensor(x, x.gradient)) for x in found.made
            ),
            "attribution": tensors.Tensors(_attributions(found.made)),
            "absent": self.chosen.absent,
            "cost": _cost(self.priced, self.need),
        }


def planned(asked: JacobianRequest, model: Modelled, reading: Reading) -> Planned:
    """The question of a request, and what it needs."""
    assert asked.measure is not None  # noqa: S101 - the request was checked
    scene = model.scene(reading.inputs)
    measure = model.measure(asked.measure, scene, ("measure",))
    with errors.moved(("select",), ("gradients",)):
        chosen = asking.stages_of(scene, asked.selected(), measure, ("gradients",))
    names = {each.name for each in chosen.wanted}
    way = route(scene, measure.stage, names)
    priced = price(scene, way, names, 1, model.dtype)
    need = _need(scene, priced, chosen.wanted, BYTES[model.dtype])
    return Planned(model, reading, scene, measure, chosen, priced, need)


def _need(scene: Scene, priced: Price, wanted: tuple[Wanted, ...], width: int) -> Need:
    """What the run, the walk back and the gradients cost."""
    counts = {each.name: cost.sliced_elements(each, scene.lengths_of(each.name)) for each in wanted}
    whole = priced.run.kept_bytes  # a gradient is as large as its stage
    elements = _TOLD * sum(counts.values())
    return Need(
        elements=elements,
        bytes=priced.bytes + whole + (_TOLD + 1) * width * sum(counts.values()),
        flops=priced.flops,
        parts=[(name, _TOLD * count) for name, count in counts.items()],
        in_arrays=elements,
    )


def _attributions(made: tuple[Gradient, ...]) -> Iterator[tuple[str, Shown]]:
    for each in made:
        values = each.attribution()
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(values.sum(dtype=np.float64))
        yield each.wanted.name, replace(_tensor(each, values), after={"sum": total})


def _tensor(of: Gradient, values: Array) -> Shown:
    """An array in the shape of a stage, or of its slice."""
    stage, where = of.wanted.stage, of.wanted.where
    axes = stages.axes_of(stage, values.ndim > len(stage.axes))
    found = tensors.array("".join(axes), values)
    if not where:
        return found
    index = {AXES[x]: where[x] for x in axes if x in where}
    return replace(found, told={**found.told, "index": index})


def _cost(priced: Price, need: Need) -> View:
    told = views.cost(priced.run)
    return {**told, "flops": need.flops, "elements": need.elements, "bytes": need.bytes}
