"""POST /v1/compare: two runs, and where they part. The work of one worker thread."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from compute import comparing
from compute.comparing import Comparison, Difference
from compute.interventions import intervened
from compute.trace import Trace
from compute.types import DType
from schemas.compare import CompareRequest
from schemas.trace import RunAsked
from service import errors, intervening, limits, modelled, views
from service.intervening import Intervening
from service.limits import Need
from service.modelled import Modelled
from service.state import State

View = Mapping[str, object]

_ADVICE = "Select fewer stages or rows in a and in b: both runs are kept until they are compared."
_OF_A_STAGE = 4  # numbers of a stage's line, besides its shape
_ONE_RUN = {"clean": False, "measures": []}  # what is compared is one run of each


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two runs, before it is run."""

    model: Modelled
    planned: Intervening

    def run(self, check: Callable[[], None]) -> Trace:
        question, weighted = self.planned.question, self.planned.weighted
        return intervened.answer(question, weighted.weights, check).after

    def view(self) -> View:
        return {
            "model": views.model(self.model, self.planned.weighted),
            "input": views.read(self.model, self.planned.reading),
        }


def work(asked: CompareRequest, state: State, check: Callable[[], None]) -> View:
    """The members of the answer to a request; `check` may raise to stop the work."""
    with ExitStack() as models:
        a = _side("a", asked.a, models, state, check)
        b = _side("b", asked.b, models, state, check)
        _check_both(a, b, state)
        scenes = [side.model.scene(side.planned.question.inputs) for side in (a, b)]
        found = comparing.compare(a.run(check), b.run(check), *scenes)
        return _answer(a, b, found, asked.threshold)


def _side(
    name: str, asked: RunAsked, models: ExitStack, state: State, check: Callable[[], None]
) -> _Side:
    """A run within the limits of a trace; what is wrong with it stands below its name."""
    with errors.moved((), (name,)):
        model = models.enter_context(modelled.of(asked.model, asked.dtype, state, check))
        return _Side(model, intervening.plan(asked.model_copy(update=_ONE_RUN), model))


_NOTHING_COMPARED = "no stage of both has the same shape, so nothing was compared"


def _check_both(a: _Side, b: _Side, state: State) -> None:
    """TooLarge where both runs together are beyond a limit."""
    of_a, of_b = a.planned.cost, b.planned.cost
    shared = a.planned.weighted.weights is b.planned.weighted.weights
    lines = [len(x.by_stage) for x in (of_a, of_b)]
    need = Need(
        elements=_OF_A_STAGE * sum(lines),
        bytes=of_a.bytes + of_b.bytes - (of_b.weight_bytes if shared else 0),
        flops=of_a.flops + of_b.flops,
        parts=[("a", of_a.elements), ("b", of_b.elements)],
    )
    dtype: DType = "float64" if "float64" in (a.model.dtype, b.model.dtype) else "float32"
    limits.check_need(need, dtype, state.settings, _ADVICE)


def _answer(a: _Side, b: _Side, found: Comparison, threshold: float) -> View:
    return {
        "a": a.view(),
        "b": b.view(),
        "threshold": threshold,
        "stages": [_stage(one, threshold) for one in found.differences],
        "first_difference": found.first_beyond(threshold),
        "reason": None if found.differences else _NOTHING_COMPARED,
        "only_in": {"a": found.only_in_a, "b": found.only_in_b},
        "shapes": [{"name": x.name, "a": x.a, "b": x.b} for x in found.shapes],
    }


def _stage(found: Difference, threshold: float) -> View:
    return {
        "name": found.name,
        "shape": found.shape,
        "max_abs": found.max_abs,
        "rel": found.rel,
        "norm_ratio": found.norm_ratio,
        "differs": found.max_abs > threshold,
        "nonfinite": found.apart,
    }
