"""What a running service holds: its settings, who computes when, its models."""

from dataclasses import dataclass
from typing import cast

from starlette.requests import Request

from service.admission import Admission
from service.settings import Settings
from service.store import Store


@dataclass(frozen=True, slots=True)
class State:
    """Made once for each application."""

    settings: Settings
    admission: Admission
    store: Store


def make(settings: Settings) -> State:
    """The state of a service with these settings."""
    admission = Admission(
        slots=settings.slots, queue=settings.queue, seconds=settings.deadline_seconds
    )
    return State(settings=settings, admission=admission, store=Store(settings.models))


def of(request: Request) -> State:
    """The state of the application that answers a request."""
    return cast(State, request.app.state.glassblock)
