"""Whether the service lives and takes work, and what its problems mean."""

from fastapi import Request, Response

from schemas.health import Health, Readiness, Welcome
from schemas.problems import ProblemKind
from service import __version__, errors, problems, state
from service.answers import json
from service.openapi import problem_responses
from service.routes import routing

router = routing.router("operations", "")


@router.get("/", response_model=Welcome)
async def welcome() -> Response:
    """Where to go from here."""
    found = Welcome(
        name="glassblock",
        version=__version__,
        trace="/v1/trace",
        contributions="/v1/contributions",
        subspaces="/v1/subspaces",
        sweep="/v1/sweep",
        compare="/v1/compare",
        decode="/v1/decode",
        jacobian="/v1/jacobian",
        rope="/v1/rope",
        equivariance="/v1/equivariance",
        sizing="/v1/sizing",
        sizing_capacity="/v1/sizing/capacity",
        sizing_inverse="/v1/sizing/inverse",
        sizing_compare="/v1/sizing/compare",
        docs="/docs",
        openapi="/openapi.json",
        models="/v1/models",
        presets="/v1/presets",
        sizing_reconcile="/v1/sizing/reconcile",
        devices="/v1/devices",
        stages="/v1/stages",
        limits="/v1/limits",
    )
    return json(found)


@router.get("/healthz", response_model=Health)
async def health() -> Response:
    """The process answers; how busy it is does not matter."""
    return json(Health(status="ok"))


@router.get("/readyz", response_model=Readiness, responses=problem_responses("draining"))
async def readiness(request: Request) -> Response:
    """The service takes work; a 503 once it is stopping."""
    state.of(request).admission.refuse_if_draining()
    return json(Readiness(status="ready"))


@router.get(
    "/problems/{code}", response_model=ProblemKind, responses=problem_responses("not-found")
)
async def problem(code: str) -> Response:
    """What a kind of problem means: the `type` of every problem points here."""
    if code not in problems.KINDS:
        raise errors.NotFound
    kind = problems.KINDS[code]
    return json(
        ProblemKind(type=kind.type, title=kind.title, status=kind.status, meaning=kind.meaning)
    )
