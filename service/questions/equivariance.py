"""POST /v1/equivariance: runs of an input and of its rows permuted. For one worker thread."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from compute import cost, equivariance, removing, selection
from compute.equivariance import Compared, Outcome, Question
from compute.errors import Fault, QuestionError, SelectionError
from compute.selection import Scene, Wanted
from compute.types import AXES, Inputs, Ints
from schemas.equivariance import EquivarianceRequest
from service import limits, modelled, views
from service.limits import Need
from service.modelled import Modelled
from service.state import State

View = Mapping[str, object]

_ADVICE = "Select fewer stages, or ask for fewer positions, a smaller batch or a smaller model."
_RUNS = 2  # of a case: X and P X
_OF_A_STAGE = 4  # numbers beside its rows
_COMPARING = 6  # float64 numbers held for each number of the stage that is compared


def work(asked: EquivarianceRequest, state: State, check: Callable[[], None]) -> View:
    """The members of the answer to a request; `check` may raise to stop the work."""
    with modelled.of(asked.model, asked.dtype, state, check) as model:
        reading = model.read(asked.input)
        order = _order(asked.permutation, reading.inputs)
        wanted = _wanted(asked, model.scene(reading.inputs))
        need = _need(model, reading.inputs, wanted)
        needed = limits.check_need(need, asked.dtype, state.settings, _ADVICE)
        limits.check_tokens(reading.inputs, model.text, state.settings)
        weighted = model.weights(needed)
        question = Question(
            config=model.config,
            weights=weighted.weights,
            inputs=reading.inputs,
            order=order,
            wanted=wanted,
            check=check,
        )
        cases = [_case(outcome) for outcome in equivariance.outcomes(question)]
    return {
        "model": views.model(model, weighted),
        "input": views.read(model, reading),
        "permutation": order,
        "dtype": asked.dtype,
        "tolerance": equivariance.TOLERANCE[asked.dtype],
        "has": {
            "positions": model.config.position.kind,
            "mask": removing.has_masks(model.config),
        },
        "cases": cases,
    }


def _order(asked: Ints | None, inputs: Inputs) -> Ints:
    """The permutation, or a QuestionError where it is none of the input's rows."""
    n = inputs.positions
    if asked is None:
        return equivariance.rotated_by_one(n)
    if asked.shape != (n,) or not np.array_equal(np.sort(asked), np.arange(n)):
        detail = f"A permutation of {n} rows has each number from 0 to {n - 1} once."
        fault = Fault(code="not_a_permutation", detail=detail, place=("permutation",))
        raise QuestionError([fault])
    return asked


def _wanted(asked: EquivarianceRequest, scene: Scene) -> tuple[Wanted, ...]:
    selected = asked.selected()
    if selected is None:
        return equivariance.default(scene)
    try:
        return selection.resolve(selected, scene).wanted
    except SelectionError as error:
        raise SelectionError([_whole(fault) for fault in error.faults]) from None


def _whole(fault: Fault) -> Fault:
    """What a trace is told to slice cannot be compared here."""
    detail = "It is of chosen receiving positions; whole stages are compared: attn.pattern, attn.v."
    return replace(fault, detail=detail) if fault.code == "position_needed" else fault


def _need(model: Modelled, inputs: Inputs, wanted: tuple[Wanted, ...]) -> Need:
    """What the runs of all cases cost, the dearest of them for memory."""
    variants = [x for x in removing.variants(model.config) if x.same_as is None]
    costs = [
        cost.estimate(scene, equivariance.existing(wanted, scene), model.dtype)
        for scene in (selection.scene_for(variant.config, inputs) for variant in variants)
    ]
    rows = len(wanted) * (2 * inputs.positions + _OF_A_STAGE)
    cases = len(removing.CASES)
    compared = _COMPARING * 8 * max((max(x.by_stage.values(), default=0) for x in costs), default=0)
    return Need(
        elements=cases * rows,
        bytes=max(x.bytes + x.kept_bytes for x in costs) + compared,
        flops=_RUNS * sum(x.flops for x in costs),
        parts=[("cases", cases * rows)],
    )


def _case(outcome: Outcome) -> View:
    case, first = outcome.variant.case, outcome.first
    return {
        "case": case.name,
        "positions": case.positions,
        "mask": case.mask,
        "same_as": outcome.variant.same_as,
        "permutes": first is None if outcome.stages else None,
        "first": None if first is None else {"stage": first.name, "positions": first.failing},
        "stages": [_stage(stage) for stage in outcome.stages],
    }


def _stage(found: Compared) -> View:
    return {
        "name": found.name,
        "axes": [AXES[letter] for letter in found.axes],
        "max_abs": found.max_abs,
        "rel": found.rel,
        "permutes": found.permutes,
        "worst_position": found.worst,
        "by_position": found.apart,
    }
