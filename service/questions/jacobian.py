"""POST /v1/jacobian: a state by another, or a measure by stages. For one worker thread."""

from collections.abc import Callable, Mapping

from schemas.jacobian import JacobianRequest
from service import limits, modelled, views
from service.questions import gradients, state_pair
from service.state import State

View = Mapping[str, object]

_NOTHING = ("jacobian", "measure", "gradients", "attribution")


def work(asked: JacobianRequest, state: State, check: Callable[[], None]) -> View:
    """The members of the answer to a request; `check` may raise to stop the work."""
    answer = gradients.answer if asked.of is None else state_pair.answer
    with modelled.of(asked.model, asked.dtype, state, check) as model:
        reading = model.read(asked.input)
        limits.check_tokens(reading.inputs, model.text, state.settings)
        weighted, members = answer(asked, model, reading)
    return {
        "model": views.model(model, weighted),
        "input": views.read(model, reading),
        "dtype": asked.dtype,
        **dict.fromkeys(_NOTHING),
        "absent": {},
        **members,
    }
