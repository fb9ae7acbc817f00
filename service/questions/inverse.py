"""POST /v1/sizing/inverse: the models nearest to a target. The work of one worker thread."""

from collections.abc import Callable, Mapping

from compute.sizing.inverting import inverse
from schemas.sizing.inverse import InverseRequest
from service import errors
from service.sizing import inverse as views
from service.sizing import sized
from service.state import State

View = Mapping[str, object]


def work(asked: InverseRequest, state: State, check: Callable[[], None]) -> View:
    """The members of the answer to a request."""
    with errors.moved(("model",), ("style",)):
        style = sized.of(asked.style, state)
    wanted = views.goal(asked.target)
    check()
    with errors.moved(("ask",), ("target", wanted.measured)):
        found = inverse.find(style.config, wanted, views.rule(asked), asked.best)
    return {"style": sized.model(style), **views.view(found, wanted)}
