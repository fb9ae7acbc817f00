"""The body of a request: negotiated, bounded in size, time and count, parsed as JSON.

A body that is refused before it was read is discarded by the server as it arrives, so the
connection stays usable; after a 408 it is closed.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
from pydantic import BaseModel, ValidationError
from starlette.datastructures import Headers
from starlette.requests import Request

from schemas.problems import Advice
from service import errors, json_text, limits
from service.held import Held
from service.settings import Settings

JSON = "application/json"
Model = TypeVar("Model", bound=BaseModel)

_COUNTED = {"body_lists": (b"[", b"{"), "body_keys": (b":",), "body_values": (b",",)}
"""Limit -> the marks that begin what it bounds (those inside a string count too)."""

_ADVICE: Advice = {
    "text": "Send a large tensor as base64: an object of dtype, shape and data in its place."
}


@asynccontextmanager
async def read(
    request: Request, settings: Settings, held: Held, offered: Sequence[str] = (JSON,)
) -> AsyncIterator[bytes]:
    """The body of a request that sends JSON and takes one of the offered media types.

    It counts as held within the block: as long as announced (as body_bytes where nothing is)
    while it is read, then as long as it is. Raises UnsupportedMedia, NotAcceptable, BodyTooLarge,
    Busy, SlowBody, and Starlette's ClientDisconnect where the client goes away.
    """
    _refuse_other_media(request.headers)
    refuse_unacceptable(request.headers, offered)
    size = _announced_size(request.headers, settings.body_bytes)
    held.refuse_if_full(size)
    with held.count(size) as share:
        body = await _in_time(request, settings)
        share.resize(len(body))
        yield body


def parse(body: bytes, model: type[Model], settings: Settings) -> Model:
    """The body as a request model; MalformedJson, or InvalidRequest with every fault located.

    TooLarge where it has more lists and objects, or more keys, than the limits: counted before
    anything is made of it.
    """
    for name, marks in _COUNTED.items():
        limits.check(name, sum(map(body.count, marks)), settings, advice=_ADVICE)
    raw = json_text.load(body)
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise errors.InvalidRequest(error, raw, model) from None


def refuse_unacceptable(headers: Headers, offered: Sequence[str]) -> None:
    """Raise NotAcceptable where a client takes none of the media types on offer."""
    if not any(acceptable(headers.getlist("accept"), media) for media in offered):
        raise errors.NotAcceptable(offered)


def acceptable(accept: Iterable[str], media: str) -> bool:
    """Whether the Accept headers allow a media type: the most specific range that meets it rules.

    RFC 9110, 12.5.1. No header allows everything.
    """
    ranges = [part for header in accept for part in header.split(",") if part.strip()]
    if not ranges:
        return True
    met = [found for found in map(_weighed, ranges) if found[0] in _ranges_meeting(media)]
    rules = max(met, key=lambda found: _ranges_meeting(media).index(found[0]), default=("", 0.0))
    return rules[1] > 0


def _ranges_meeting(media: str) -> tuple[str, ...]:
    """Least specific first."""
    return "*/*", f"{media.partition('/')[0]}/*", media


def _weighed(written: str) -> tuple[str, float]:
    """(media range, weight) of one entry; a weight that cannot be read counts as 1."""
    name, *parameters = (word.strip().lower() for word in written.split(";"))
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q":
            return name, _number(value)
    return name, 1.0


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


def _refuse_other_media(headers: Headers) -> None:
    media, *parameters = (word.strip() for word in headers.get("content-type", "").split(";"))
    if media.lower() != JSON:
        raise errors.UnsupportedMedia("Send the body as Content-Type: application/json.")
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "charset" and value.strip(' "').lower() not in ("utf-8", "utf8"):
            raise errors.UnsupportedMedia("JSON is sent in UTF-8.")
    refuse_coded(headers)


def refuse_coded(headers: Headers) -> None:
    """Raise UnsupportedMedia for a compressed body."""
    if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise errors.UnsupportedMedia("Send the body without compression.")


def _announced_size(headers: Headers, most: int) -> int:
    """How long the client says its body is, or `most` where it does not say."""
    size = announced(headers, most)
    if size is not None and size > most:
        raise errors.BodyTooLarge(most, size)
    return most if size is None else size


def announced(headers: Headers, most: int, limit: str = "body_bytes") -> int | None:
    """How long the client says its body is; BodyTooLarge where that is no number to read."""
    length = headers.get("content-length", "")
    if not length:
        return None
    if not (length.isascii() and length.isdigit() and len(length) < 20):
        raise errors.BodyTooLarge(most, name=limit)
    return int(length)


async def _in_time(request: Request, settings: Settings) -> bytes:
    try:
        with anyio.fail_after(settings.body_seconds):
            return await _counted(request, settings.body_bytes)
    except TimeoutError:
        raise errors.SlowBody(settings.body_seconds) from None


async def _counted(request: Request, most: int) -> bytes:
    body = bytearray()  # not a list of chunks: tiny ones would take many times their length
    async for chunk in request.stream():
        if len(body) + len(chunk) > most:
            raise errors.BodyTooLarge(most)
        body += chunk
    return bytes(body)
