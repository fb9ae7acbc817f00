"""The body of a request: negotiated, bounded in size, time and count, parsed.

A body that is refused before it was read is discarded by the server as it arrives, so the
connection stays usable; after a 408 it is closed.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import anyio
from pydantic import BaseModel, ValidationError
from starlette.datastructures import Headers
from starlette.requests import Request

from service import errors, json_text
from service.forms import form
from service.forms import sent as sent_form
from service.forms.form import JSON, SAFETENSORS
from service.held import Held
from service.settings import Settings

Model = TypeVar("Model", bound=BaseModel)

_LIMITS = {JSON: "body_bytes", SAFETENSORS: "binary_body_bytes"}
"""Media type -> the limit of a body."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A body as it came, its media type, and the media type chosen for its answer."""

    body: bytes | bytearray
    media: str = JSON
    accepted: str = JSON


@asynccontextmanager
async def read(
    request: Request, settings: Settings, held: Held, offered: Sequence[str] = form.JSON_ALONE
) -> AsyncIterator[Sent]:
    """The body of a request that sends what its route takes, and takes one of the offered media
    types.

    It counts as held within the block: as long as announced (as its limit where nothing is) while
    it is read, then as long as it is. Raises UnsupportedMedia, NotAcceptable, BodyTooLarge, Busy,
    SlowBody, and Starlette's ClientDisconnect where the client goes away.
    """
    media = _media(request.headers, taken(request))
    accepted = acceptable(request.headers, offered)
    limit = _LIMITS[media]
    size = _announced_size(request.headers, getattr(settings, limit), limit)
    held.refuse_if_full(size)
    with held.count(size) as share:
        body = await _in_time(request, settings, limit)
        share.resize(len(body))
        yield Sent(body, media, accepted)


def parse(sent: Sent, model: type[Model], settings: Settings) -> Model:
    """The body as a request model.

    Raises MalformedJson, InvalidBinary, InvalidRequest with every fault located, and TooLarge where
    its JSON has more lists and objects, keys or values than the limits.
    """
    raw = _raw(sent, partial(json_text.refuse_too_many, settings=settings))
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise errors.InvalidRequest(error, raw, model) from None


def packed(sent: Sent) -> object:
    """The body where a tensor of it may be bytes: faults have no places inside of those."""
    if sent.media == JSON and b'"data"' not in sent.body:
        return None
    return _raw(sent, lambda _: None)


def _raw(sent: Sent, check: Callable[[json_text.Bytes], None]) -> object:
    if sent.media == SAFETENSORS:
        return sent_form.opened(sent.body, check)
    check(sent.body)
    return json_text.load(bytes(sent.body))


def taken(request: Request) -> Sequence[str]:
    """The media types that a body may have: those that the route of the request declares."""
    route = request.scope.get("route")
    declared = getattr(route, "openapi_extra", None) or {}
    return tuple(declared.get("requestBody", {}).get("content", form.JSON_ALONE))


def acceptable(headers: Headers, offered: Sequence[str]) -> str:
    """The media type on offer that a client likes best; NotAcceptable where it takes none."""
    accepted = form.chosen(headers.getlist("accept"), offered)
    if accepted is None:
        raise errors.NotAcceptable(offered)
    return accepted


def _media(headers: Headers, taken: Sequence[str]) -> str:
    """The media type of a body; UnsupportedMedia where it is not read here."""
    written, *parameters = (word.strip() for word in headers.get("content-type", "").split(";"))
    media, listed = written.lower(), ", ".join(taken)
    if media not in taken:
        detail = f"Send the body as Content-Type: {' or '.join(taken)}."
        raise errors.UnsupportedMedia(detail, listed)
    for parameter in parameters if media == JSON else ():
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "charset" and value.strip(' "').lower() not in ("utf-8", "utf8"):
            raise errors.UnsupportedMedia("JSON is sent in UTF-8.", listed)
    refuse_coded(headers, listed)
    return media


def refuse_coded(headers: Headers, listed: str = JSON) -> None:
    """Raise UnsupportedMedia for a compressed body; listed: the media types that are read."""
    if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise errors.UnsupportedMedia("Send the body without compression.", listed)


def _announced_size(headers: Headers, most: int, limit: str) -> int:
    """How long the client says its body is, or `most` where it does not say."""
    size = announced(headers, most, limit)
    if size is not None and size > most:
        raise errors.BodyTooLarge(most, size, limit)
    return most if size is None else size


def announced(headers: Headers, most: int, limit: str = "body_bytes") -> int | None:
    """How long the client says its body is; BodyTooLarge where that is no number to read."""
    length = headers.get("content-length", "")
    if not length:
        return None
    if not (length.isascii() and length.isdigit() and len(length) < 20):
        raise errors.BodyTooLarge(most, name=limit)
    return int(length)


async def _in_time(request: Request, settings: Settings, limit: str) -> bytes | bytearray:
    try:
        with anyio.fail_after(settings.body_seconds):
            return await _counted(request, getattr(settings, limit), limit)
    except TimeoutError:
        raise errors.SlowBody(settings.body_seconds) from None


async def _counted(request: Request, most: int, limit: str) -> bytes | bytearray:
    """The body; as it is where it came at once."""
    body: bytes | bytearray = b""
    async for chunk in request.stream():
        if len(body) + len(chunk) > most:
            raise errors.BodyTooLarge(most, name=limit)
        if not body:
            body = chunk
        elif chunk:  # not a list of chunks: tiny ones would take many times their length
            body = body if isinstance(body, bytearray) else bytearray(body)
            body += chunk
    return body
