"""The application: routes, and around them the log, the errors and CORS."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from fastapi import FastAPI
from starlette.middleware import Middleware

from service import __version__, docs_page, errors, idle, middleware, state
from service.routes import (
    compare,
    contributions,
    decode,
    devices,
    equivariance,
    jacobian,
    limits,
    models,
    operations,
    presets,
    rope,
    sizing,
    sizing_capacity,
    sizing_compare,
    sizing_inverse,
    sizing_reconcile,
    stages,
    subspaces,
    sweep,
    trace,
)
from service.settings import Settings
from service.storage import tidying

COMPUTING = (trace, contributions, subspaces, sweep, compare, decode, jacobian, rope, equivariance)
"""The calls that compute: a model or a rule, and a question about it."""

SIZING = (
    sizing,
    sizing_capacity,
    sizing_inverse,
    sizing_compare,
    sizing_reconcile,
)
"""The calls that size a model from its config alone."""

OTHERS = (models, presets, devices, stages, limits, operations, docs_page)
"""What there is, and what a service is asked by machines and people."""

DESCRIPTION = (
    "Runs a transformer block, or a stack of them, and returns every intermediate state. "
    "GET /v1/stages names them all. Sizes any transformer from its config, exactly."
)


def create_app(settings: Settings | None = None) -> FastAPI:
    """The service with these settings, or with those of the environment."""
    chosen = Settings() if settings is None else settings
    app = FastAPI(
        title="Glassblock",
        version=__version__,
        description=DESCRIPTION,
        openapi_url=None,
        openapi_tags=[
            {"name": name} for name in ("trace", "sizing", "models", "discovery", "operations")
        ],
        redirect_slashes=False,
        lifespan=_lifespan,
        middleware=_around(chosen),
        exception_handlers=dict.fromkeys(errors.HANDLED, middleware.Handler(chosen.faults)),
    )
    app.state.glassblock = state.make(chosen)
    for module in (*COMPUTING, *SIZING, *OTHERS):
        app.router.routes += module.router.routes  # not included: that is matched twice a request
    return app


def _around(settings: Settings) -> list[Middleware]:
    """Outermost first. Without origins every page of another site is refused, and told why."""
    cors = Middleware(
        middleware.Cors,
        allow_origins=settings.cors_origins,
        allow_methods=("GET", "POST", "PUT", "DELETE"),
        allow_headers=("Content-Type", "Authorization"),
        expose_headers=("Server-Timing", "Retry-After"),
        max_age=600,
    )
    inner = [
        Middleware(middleware.RequestLog),
        Middleware(middleware.CatchAll, most=settings.faults),
    ]
    return [cors, *inner]


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    here: state.State = app.state.glassblock
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(idle.give_back, here.admission, here.held)
        tasks.start_soon(tidying.keep_tidy, here.store)
        yield
        tasks.cancel_scope.cancel()
    here.admission.drain()
