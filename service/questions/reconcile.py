"""POST /v1/sizing/reconcile: explanations of a published count. The work of one worker thread."""

from collections.abc import Callable, Mapping

from compute.sizing import parameters
from compute.sizing.reconciling import reconcile
from schemas.sizing.reconcile import ReconcileRequest
from service.sizing import reconcile as views
from service.sizing import sized
from service.state import State

View = Mapping[str, object]


def work(asked: ReconcileRequest, state: State, check: Callable[[], None]) -> View:
    """The members of the answer to a request."""
    model = sized.of(asked.model, state)
    check()
    found = reconcile.explain(model.config, views.published(asked.published), asked.best)
    return {
        "model": sized.model(model),
        "symbols": views.letters(found, sized.symbols(model)),
        **views.view(found, asked.published, parameters.count(model.config)),
    }
