"""One state by another: the part of POST /v1/jacobian that answers `of` and `by`."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from compute import stages
from compute.cost import BYTES
from compute.derivatives import asking, jacobian
from compute.derivatives.asking import Pair, PairAsked
from compute.derivatives.jacobian import Jacobian, Walk
from compute.derivatives.price import Price, price
from compute.derivatives.pulling import Point
from compute.derivatives.routes import Route, route
from compute.derivatives.rows import active
from compute.errors import QuestionError, outside, refuse_if
from compute.selection import Scene
from compute.types import Array, Inputs
from schemas.jacobian import JacobianRequest
from service import views
from service.limits import Need
from service.modelled import Modelled, Weighted
from service.reading import Reading

View = Mapping[str, object]

_ADVICE = (
    "Ask for singular_values or norms in the place of matrix, for stages that are nearer to each "
    "other, or of a smaller model or a shorter input."
)
_SVD = 8  # flops of singular values for each i · j · min(i, j)
_HELD = 4  # copies of a matrix in float64 while its singular values are found


@dataclass(frozen=True, slots=True)
class _Shown:
    """How matrices (i, j) are shown, and how many there are."""

    parts: frozenset[str]
    factored: bool
    shape: tuple[int, int]

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """The matrices of the answer; a norm's is square."""
        split = 2 if "identity_part" in self.parts else 1
        i, _ = self.shape
        return [self.shape] * split + ([self.shape] * split + [(i, i)] if self.factored else [])

    @property
    def elements(self) -> int:
        """Numbers of the answer."""
        norms = 2 * len(self.sizes) if "norms" in self.parts else 0
        return self.in_arrays + norms

    @property
    def in_arrays(self) -> int:
        """Of them those of matrices and singular values."""
        each = {
            "matrix": sum(i * j for i, j in self.sizes),
            "singular_values": sum(min(size) for size in self.sizes),
        }
        return sum(count for part, count in each.items() if part in self.parts)

    def split(self, found: Jacobian) -> View:
        """identity · I + branch."""
        apart = "identity_part" in self.parts
        return {
            "identity": found.identity,
            "whole": self.matrix(found.whole()),
            "branch": self.matrix(found.branch) if apart else None,
        }

    def matrix(self, values: Array) -> View:
        """One matrix."""
        sizes = {"singular_values", "norms"} & self.parts
        singular = jacobian.singular_values(values) if sizes else np.empty(0)
        return {
            "matrix": values if "matrix" in self.parts else None,
            "singular_values": singular if "singular_values" in self.parts else None,
            "norms": _norms(values, singular) if "norms" in self.parts else None,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A question before anything is run. batch: the row that is asked about, None without any."""

    model: Modelled
    inputs: Inputs
    batch: int | None
    scene: Scene
    pair: Pair
    way: Route
    priced: Price
    shown: _Shown
    why_whole: str | None
    need: Need
    advice: str = _ADVICE

    def answer(self, weighted: Weighted) -> View:
        """The members of the answer."""
        model, pair, shown = self.model, self.pair, self.shown
        point = Point(model.config, weighted.weights, self.inputs, model.check)
        walk = Walk(point, self.scene, point.run(self.way.needs), self.priced.rows)
        found = {
            "of": pair.of,
            "by": pair.by,
            "position": pair.position,
            "source": pair.source,
            "batch": self.batch,
            **shown.split(jacobian.jacobian(walk, pair)),
            "factors": _factors(walk, pair, shown) if shown.factored else None,
            "not_factored": self.why_whole,
        }
        return {"jacobian": found, "cost": _cost(self.priced, self.need)}


def planned(asked: JacobianRequest, model: Modelled, reading: Reading) -> Planned:
    """The question of a request, and what it needs."""
    batch = _batch(asked.batch or 0, reading.inputs)
    inputs = jacobian.row_of(reading.inputs, batch)
    scene = model.scene(inputs)
    pair = _pair(asked, scene)
    wants = "factors" in asked.parts
    why_whole = jacobian.why_whole(scene, pair) if wants else None
    shown = _Shown(frozenset(asked.parts), wants and why_whole is None, _shape(scene, pair))
    way = route(scene, pair.of, [pair.by])
    at = active(scene, way, pair.position, pair.source)
    priced = price(scene, way, [], shown.shape[0], model.dtype, at)
    return Planned(
        model=model,
        inputs=inputs,
        batch=None if reading.inputs.batch is None else batch,
        scene=scene,
        pair=pair,
        way=way,
        priced=priced,
        shown=shown,
        why_whole=why_whole,
        need=_need(priced, shown, BYTES[model.dtype]),
    )


def _batch(asked: int, inputs: Inputs) -> int:
    length = inputs.batch or 1
    refuse_if(QuestionError, list(outside("the input", "batch", asked, length, ("batch",))))
    return asked % length


def _pair(asked: JacobianRequest, scene: Scene) -> Pair:
    position = -1 if asked.position is None else asked.position
    spelled = PairAsked(
        of=asked.of or "", by=asked.by or "", position=position, source=asked.source
    )
    return asking.pair(scene, spelled)


def _shape(scene: Scene, pair: Pair) -> tuple[int, int]:
    i, j = (scene.lengths_of(x)[stages.find(x).axes[-1]] for x in (pair.of, pair.by))
    return i, j


def _need(priced: Price, shown: _Shown, width: int) -> Need:
    """What the run, the walks back and the singular values cost; factors are walked once more."""
    entries = sum(i * j for i, j in shown.sizes)
    largest = max(i * j for i, j in shown.sizes)
    singular = bool({"singular_values", "norms"} & shown.parts)
    svd = sum(_SVD * i * j * min(i, j) for i, j in shown.sizes) if singular else 0
    walked = priced.flops * (2 if shown.factored else 1)
    return Need(
        elements=shown.elements,
        bytes=priced.bytes + width * entries + _HELD * 8 * largest,
        flops=walked + svd,
        parts=[("jacobian", shown.elements)],
        in_arrays=shown.in_arrays,
    )


def _factors(walk: Walk, pair: Pair, shown: _Shown) -> View:
    total = jacobian.sum_before(walk.scene, pair.of)
    assert total is not None  # noqa: S101 - it is factored
    both = jacobian.factors(walk, pair, total)
    return {"stage": total, "norm": shown.matrix(both.norm), "sum": shown.split(both.sum)}


def _norms(values: Array, singular: Array) -> View:
    with np.errstate(over="ignore", invalid="ignore"):
        frobenius = float(np.sqrt(np.square(values.astype(np.float64)).sum()))
    return {"frobenius": frobenius, "spectral": singular.max(initial=0.0)}


def _cost(priced: Price, need: Need) -> View:
    told = views.cost(priced.run)
    return {**told, "flops": need.flops, "elements": need.elements, "bytes": need.bytes}
