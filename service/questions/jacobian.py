"""POST /v1/jacobian: a state by another, or a measure by stages. For one worker thread."""

from collections.abc import Callable, Mapping
from functools import partial

from schemas.jacobian import JacobianRequest
from service import dry_runs, limits, modelled, views
from service.modelled import Modelled
from service.questions import gradients, state_pair
from service.reading import Reading
from service.state import State

View = Mapping[str, object]

_NOTHING = ("jacobian", "measure", "gradients", "attribution")


def work(asked: JacobianRequest, state: State, check: Callable[[], None]) -> View:
    """The members of the answer to a request; `check` may raise to stop the work."""
    with modelled.of(asked.model, asked.dtype, state, check) as model:
        reading = model.read(asked.input)
        tokens = partial(limits.check_tokens, reading.inputs, model.text, state.settings)
        planned = _planned(asked, model, reading)
        need, advice = planned.need, planned.advice
        if asked.dry_run:
            return dry_runs.answer(model, need, model.dtype, advice, tokens)
        tokens()
        needed = limits.check_need(need, model.dtype, model.settings, advice, model.form)
        weighted = model.weights(needed)
        members = planned.answer(weighted)
    return {
        "model": views.model(model, weighted),
        "input": views.read(model, reading),
        "dtype": asked.dtype,
        **dict.fromkeys(_NOTHING),
        "absent": {},
        **members,
    }


def _planned(
    asked: JacobianRequest, model: Modelled, reading: Reading
) -> gradients.Planned | state_pair.Planned:
    plan = gradients.planned if asked.of is None else state_pair.planned
    return plan(asked, model, reading)
