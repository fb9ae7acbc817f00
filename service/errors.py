"""Which error is which problem: the one place that knows HTTP statuses.

    ServiceError
    ├── MalformedJson       ├── NotFound        ├── Busy
    ├── InvalidRequest      ├── UnknownModel    ├── Draining
    ├── UnsupportedMedia    ├── TooLarge        ├── Deadline
    ├── NotAcceptable       ├── BodyTooLarge    ├── WrongMethod
    ├── MalformedHttp       ├── HeadTooLarge    ├── SlowBody
    ├── MalformedMultipart  ├── BadModelName    ├── UploadsOff
    ├── InvalidUpload       ├── FixedModel      ├── StoreFull
    ├── InvalidBinary       ├── CorsRefused     └── MalformedSafetensors

Compute's tree is mapped by `ORIGINS`; anything unknown, a schema of ours that refuses our own
answer among it, is a 500 that tells nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import singledispatch
from types import MappingProxyType

from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

from compute import errors as compute_errors
from compute.errors import ComputeError, Fault, Place
from schemas.presets import PRESETS
from schemas.problems import Advice, BrokenLimit, Estimate
from service import faults
from service.problems import Refusal
from service.settings import PREFIX

NAME_RULE = (
    "A model's name is 1 to 64 letters, digits, '.', '_' and '-', a letter or a digit first."
)
_MOST_PARTS = 20
_MOST_NAMES = 100  # a problem is short
_LONGEST_NAME = 64


class ServiceError(Exception):
    """A request that the service itself refuses."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal


class MalformedJson(ServiceError):
    """The body is not JSON; `detail` says why without quoting it."""

    def __init__(self, detail: str) -> None:
        super().__init__(Refusal(code="malformed-json", detail=detail))


class InvalidRequest(ServiceError):
    """A body that is not the model it should be; `body` is its JSON, to locate the faults in."""

    def __init__(self, error: ValidationError, body: object, model: type[BaseModel]) -> None:
        found, total = faults.of_validation(error, body, model)
        super().__init__(Refusal(code="invalid-request", faults=found, total=total))


class MalformedSafetensors(ServiceError):
    """A body that is no safetensors file with a request in it."""

    def __init__(self, found: Sequence[Fault]) -> None:
        super().__init__(Refusal(code="malformed-safetensors", faults=found))


class InvalidBinary(ServiceError):
    """A safetensors body whose tensors have no place in its request."""

    def __init__(self, found: Sequence[Fault]) -> None:
        super().__init__(Refusal(code="invalid-request", faults=found))


class UnsupportedMedia(ServiceError):
    """The body comes in a form that is not read; `media` are those that are."""

    def __init__(self, detail: str, media: str = "application/json") -> None:
        accepted = {"Accept": media}
        super().__init__(Refusal(code="unsupported-media-type", detail=detail, headers=accepted))


class NotAcceptable(ServiceError):
    """The client takes none of the forms on offer."""

    def __init__(self, offered: Sequence[str]) -> None:
        detail = f"This call answers with {' or '.join(offered)}."
        super().__init__(Refusal(code="not-acceptable", detail=detail))


class CorsRefused(ServiceError):
    """A preflight request from an origin, or for a method or header, that is not allowed."""

    def __init__(self) -> None:
        super().__init__(Refusal(code="cors-refused"))


class MalformedHttp(ServiceError):
    """What came is no HTTP request."""

    def __init__(self) -> None:
        super().__init__(Refusal(code="malformed-http"))


class HeadTooLarge(ServiceError):
    """The first line and the headers of a request are longer than the limit."""

    def __init__(self, most: int) -> None:
        detail = f"The first line and the headers have at most {most:,} bytes."
        limit: BrokenLimit = {"name": "head_bytes", "value": most}
        super().__init__(Refusal(code="head-too-large", detail=detail, members={"limit": limit}))


class NotFound(ServiceError):
    """There is nothing at this address."""

    def __init__(self) -> None:
        super().__init__(Refusal(code="not-found"))


class WrongMethod(ServiceError):
    """The address takes other methods: these."""

    def __init__(self, allowed: Sequence[str]) -> None:
        methods = ", ".join(allowed)
        headers = {"Allow": methods}
        detail = f"This address takes {methods}."
        super().__init__(Refusal(code="method-not-allowed", detail=detail, headers=headers))


class UnknownModel(ServiceError):
    """A model that is not there; `names` are those there are."""

    def __init__(self, asked: str, names: Sequence[str], place: Place = ("model", "name")) -> None:
        detail = f"There is no model of this name.{_nearest(asked, names)} {_LOOKED_FOR}"
        told = list(names[:_MOST_NAMES])
        fault = Fault(code="unknown_model", detail=detail, place=place, expected=told)
        members = {"models": told}
        super().__init__(Refusal(code="unknown-model", faults=[fault], members=members))


class TooLarge(ServiceError):
    """A request beyond a limit: which, what it would have cost, what would fit."""

    def __init__(
        self,
        *,
        limit: BrokenLimit,
        estimate: Estimate | None = None,
        advice: Advice | None = None,
        detail: str | None = None,
        place: Place = (),
    ) -> None:
        got, value = limit.get("got"), limit["value"]
        needed = f"{got:,}" if isinstance(got, int) else "more"
        said = detail or _beyond(limit["name"], needed, f"{value:,}")
        fault = Fault(code="beyond_limit", detail=said, place=place, expected=value, got=got)
        members: dict[str, object] = {"limit": limit}
        if estimate is not None:
            members["estimate"] = {**estimate, "parts": estimate["parts"][:_MOST_PARTS]}
        if advice is not None:
            members["advice"] = advice
        super().__init__(Refusal(code="beyond-limit", faults=[fault], members=members))


class BodyTooLarge(ServiceError):
    """A body beyond the limit; `got` where the client said how long it is."""

    def __init__(self, most: int, got: int | None = None, name: str = "body_bytes") -> None:
        limit: BrokenLimit = {"name": name, "value": most}
        if got is not None:
            limit["got"] = got
        detail = f"A body has at most {most:,} bytes."
        super().__init__(Refusal(code="body-too-large", detail=detail, members={"limit": limit}))


class SlowBody(ServiceError):
    """A body that did not arrive in time."""

    def __init__(self, seconds: float) -> None:
        detail = f"The body did not arrive within {seconds:g} seconds."
        super().__init__(Refusal(code="slow-body", detail=detail, headers={"Connection": "close"}))


class UploadsOff(ServiceError):
    """There is no folder to keep uploads in, or none that may be written to."""

    def __init__(self, detail: str = "") -> None:
        super().__init__(Refusal(code="uploads-off", detail=detail))


class BadModelName(ServiceError):
    """A name that no model can have."""

    def __init__(self) -> None:
        fault = Fault(code="bad_model_name", detail=NAME_RULE)
        super().__init__(Refusal(code="invalid-request", faults=[fault]))


class FixedModel(ServiceError):
    """A model that was not uploaded, so that nobody may replace or remove it."""

    def __init__(self, origin: str) -> None:
        detail = f"This model {_FIXED[origin]}: it is neither replaced nor removed from here."
        super().__init__(Refusal(code="fixed-model", detail=detail))


class MalformedMultipart(ServiceError):
    """An upload whose parts cannot be told apart."""

    def __init__(self) -> None:
        super().__init__(Refusal(code="malformed-multipart"))


class InvalidUpload(ServiceError):
    """Parts that are no model; the place of each fault begins with a part's file name."""

    def __init__(self, found: Sequence[Fault]) -> None:
        super().__init__(Refusal(code="invalid-upload", faults=found))


class StoreFull(ServiceError):
    """No room for an upload: beyond a limit of the store, or on the disk."""

    def __init__(self, name: str = "", most: int = 0, got: int = 0) -> None:
        if not name:
            super().__init__(Refusal(code="store-full", detail="The disk is full."))
            return
        limit: BrokenLimit = {"name": name, "value": most, "got": got}
        detail = _beyond(name, f"{got:,}", f"{most:,}")
        super().__init__(Refusal(code="store-full", detail=detail, members={"limit": limit}))


class Busy(ServiceError):
    """No room in the queue, or no turn in time."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(Refusal(code="busy", headers={"Retry-After": str(retry_after)}))


class Draining(ServiceError):
    """The service is stopping."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(Refusal(code="draining", headers={"Retry-After": str(retry_after)}))


class Deadline(ServiceError):
    """The work was stopped after its time."""

    def __init__(self, seconds: float) -> None:
        detail = f"The work was stopped after {seconds:g} seconds."
        super().__init__(Refusal(code="deadline", detail=detail))


@dataclass(frozen=True, slots=True)
class Origin:
    """Which problem an error of compute is, and where in a request its places begin.

    `inside`: places go on from there; else they are not the request's (file names).
    """

    code: str
    prefix: Place
    inside: bool = True


ORIGINS: Mapping[type[ComputeError], Origin] = MappingProxyType(
    {
        compute_errors.ConfigError: Origin("config-rule", ("model", "config")),
        compute_errors.WeightsError: Origin("shape-mismatch", ("model", "weights")),
        compute_errors.InputError: Origin("invalid-input", ("input",)),
        compute_errors.SelectionError: Origin("invalid-selection", ("select",)),
        compute_errors.InterventionError: Origin("invalid-intervention", ("interventions",)),
        compute_errors.QuestionError: Origin("unanswerable", ()),
        compute_errors.ModelError: Origin("broken-model", ("model", "name"), inside=False),
    }
)

_FIXED = {"shipped": "ships with the service", "folder": "lies in a folder of GLASSBLOCK_MODELS"}

_LOOKED_FOR = (
    "Besides those that ship, models are looked for where the settings GLASSBLOCK_MODELS and "
    "GLASSBLOCK_UPLOADS say."
)

_BY_STATUS = {404: "not-found"}


def _beyond(name: str, needed: str, most: str) -> str:
    setting = f"{PREFIX}{name.upper()}"
    return f"{name} would be {needed}; the limit is {most}, and {setting} sets it."


def _nearest(asked: str, names: Sequence[str]) -> str:
    """The name that was perhaps meant; a mistyped one has about the length of a name."""
    if asked in PRESETS:
        return " It is a preset: send preset in the place of name."
    by_lower = {name.lower(): name for name in names}
    close = get_close_matches(asked[:_LONGEST_NAME].lower(), list(by_lower), n=1)
    return f" Nearest: {by_lower[close[0]]}." if close else ""


@singledispatch
def refusal_of(error: Exception) -> Refusal:
    """What a client is told about an error."""
    return Refusal(code="internal")


@refusal_of.register
def _of_service(error: ServiceError) -> Refusal:
    return error.refusal


@refusal_of.register
def _of_compute(error: ComputeError) -> Refusal:
    origin = next((ORIGINS[kind] for kind in type(error).__mro__ if kind in ORIGINS), None)
    if origin is None:
        return Refusal(code="internal")
    placed = faults.with_prefix(error.faults, origin.prefix, origin.inside)
    return Refusal(code=origin.code, faults=placed)


@contextmanager
def moved(old: Place, new: Place) -> Iterator[None]:
    """Faults at an old place of the request, or inside it, stand at the new one instead."""
    try:
        yield
    except (ServiceError, ComputeError) as error:
        if old == new:
            raise
        refusal = refusal_of(error)
        faults_there = [_moved(fault, old, new) for fault in refusal.faults]
        raise ServiceError(replace(refusal, faults=faults_there)) from error


def _moved(fault: Fault, old: Place, new: Place) -> Fault:
    if fault.place[: len(old)] != old:
        return fault
    return replace(fault, place=(*new, *fault.place[len(old) :]))


def in_body(error: ServiceError | ComputeError, body: object) -> ServiceError:
    """The error with its faults where the body has them: entries of a tensor that was sent as bytes
    where those are."""
    refusal = refusal_of(error)
    return ServiceError(replace(refusal, faults=faults.in_bytes(refusal.faults, body)))


@refusal_of.register
def _of_http(error: HTTPException) -> Refusal:
    code = _BY_STATUS.get(error.status_code, "internal")
    return Refusal(code=code, headers=error.headers or {})


@refusal_of.register
def _of_memory(error: MemoryError) -> Refusal:
    return Refusal(code="out-of-memory", headers={"Retry-After": "5"})


HANDLED = (ServiceError, ComputeError, HTTPException, MemoryError)
"""The errors that are expected: each is the client's to know."""
