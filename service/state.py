"""What a running service has: its settings, who computes when, its models."""

from dataclasses import dataclass
from typing import cast

from starlette.requests import Request

from service.admission import Admission
from service.forms.form import PLAIN, Form
from service.held import Held
from service.quick import Quick
from service.settings import Settings
from service.storage.store import Store
from service.storage.uploading import Uploading


@dataclass(frozen=True, slots=True)
class State:
    """Made once for each application; a request in hand has a copy with its form."""

    settings: Settings
    admission: Admission
    held: Held
    streams: Held
    """The memory of the streams that are open."""
    store: Store
    quick: Quick
    uploading: Uploading | None
    """None where uploads are refused."""
    form: Form = PLAIN
    """Of the answer to the request in hand."""


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
        streams=Held(settings.stream_bytes),
        store=store,
        quick=Quick(),
        uploading=None if uploads is None else Uploading(store, uploads, settings, admission),
    )


def of(request: Request) -> State:
    """The state of the application that answers a request."""
    return cast(State, request.app.state.glassblock)
