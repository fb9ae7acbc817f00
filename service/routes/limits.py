"""How large a request may be."""

from functools import lru_cache

from fastapi import Request, Response
from pydantic.fields import FieldInfo

from schemas.limits import Limit, Limits
from service import state
from service.answers import json
from service.routes import routing
from service.settings import Settings

router = routing.router("discovery")


@router.get("/limits", response_model=Limits)
async def limits(request: Request) -> Response:
    """Every limit of this service, with its value here."""
    return json(_limits(state.of(request).settings))


@lru_cache(maxsize=4)
def _limits(settings: Settings) -> Limits:
    fields = Settings.model_fields.items()
    return Limits(
        limits=[
            Limit(
                name=name,
                value=getattr(settings, name),
                unit=unit,
                meaning=field.description or "",
            )
            for name, field in fields
            if (unit := _unit(field)) is not None
        ]
    )


def _unit(field: FieldInfo) -> str | None:
    extra = field.json_schema_extra
    return str(extra["unit"]) if isinstance(extra, dict) else None
