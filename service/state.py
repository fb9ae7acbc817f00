"""What a running service has: its settings, who computes when, its models."""

from dataclasses import dataclass
from typing import cast

from starlette.requests import Request

from service.admission import Admission
from service.held import Held
from service.settings import Settings
from service.storage.store import Store
from service.storage.uploading import Uploading


@dataclass(frozen=True, slots=True)
class State:
    """Made once for each application."""

    settings: Settings
    admission: Admission
    held: Held
    store: Store
    uploading: Uploading | None
    """None where uploads are refused."""


def make(settings: Settings) -> State:
    """The state of a service with these settings."""
    held = Held(settings.held_bytes)
    admission = Admission(
        slots=settings.slots, queue=settings.queue, seconds=settings.deadline_seconds, held=held
    )
    store = Store(settings)
    uploads = store.uploads
    return State(
        settings=settings,
        admission=admission,
        held=held,
        store=store,
        uploading=None if uploads is None else Uploading(store, uploads, settings, admission),
    )


def of(request: Request) -> State:
    """The state of the application that answers a request."""
    return cast(State, request.app.state.glassblock)
