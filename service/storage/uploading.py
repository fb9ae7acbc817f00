"""PUT /v1/models/{name}: a model taken in as it arrives, looked at whole, then given its name.

Memory holds a piece of the body at a time; the disk is written to in a worker thread. Whatever
goes wrong before the name is given leaves nothing.
"""

import errno
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar, TypeVarTuple

import anyio
from anyio import CancelScope, CapacityLimiter, to_thread
from multipart import parse_options_header
from starlette.requests import Request

from compute.checkpoints.checkpoint import Checkpoint, check_whole
from compute.checkpoints.shards import Shards
from compute.errors import ComputeError, ConfigError, Fault, ModelError
from service import bodies, errors, faults
from service.admission import Admission
from service.forms import form
from service.settings import Settings
from service.storage.opening import opened
from service.storage.parts import Parts
from service.storage.store import Store
from service.storage.uploads import Uploads

Args = TypeVarTuple("Args")
Result = TypeVar("Result")

MULTIPART = "multipart/form-data"
_PIECE = 1 << 20
_RETRY_AFTER = 5
_FULL = (errno.ENOSPC, errno.EDQUOT)
_CLOSED = (errno.EACCES, errno.EPERM, errno.EROFS)
_UNWRITABLE = "The service may not write to the folder that GLASSBLOCK_UPLOADS names."


class Uploading:
    """Takes uploads, `upload_slots` at a time."""

    def __init__(
        self, store: Store, uploads: Uploads, settings: Settings, admission: Admission
    ) -> None:
        self._store = store
        self._uploads = uploads
        self._settings = settings
        self._admission = admission
        self._slots = CapacityLimiter(settings.upload_slots)
        self._threads = CapacityLimiter(settings.upload_slots)

    async def take(self, request: Request, name: str) -> tuple[Checkpoint, bool]:
        """Store the model that a request brings under a name: the model, to be told of and not
        read from any more, and whether the name was there before.

        Raises Draining, UnsupportedMedia, NotAcceptable, BodyTooLarge, StoreFull, Busy, SlowBody,
        MalformedMultipart, InvalidUpload, and Starlette's ClientDisconnect.
        """
        self._admission.refuse_if_draining()
        boundary, announced = _boundary(request), self._announced(request)
        async with self._turn():
            room = await self._run(self._uploads.room, name)
            self._refuse(announced, room)
            async with self._place(name) as folder:
                content = await self._received(request, Parts(folder, boundary), room)
                checkpoint = await self._run(_checked, folder)
                known = await self._run(self._publish, folder, content, name)
                return checkpoint, known

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        try:
            self._slots.acquire_nowait()
        except anyio.WouldBlock:
            raise errors.Busy(_RETRY_AFTER) from None
        try:
            yield
        finally:
            self._slots.release()
            self._admission.runs += 1  # memory is given back after it, too

    @asynccontextmanager
    async def _place(self, name: str) -> AsyncIterator[Path]:
        """A folder that is gone afterwards. It has the model's name, which faults may tell."""
        incoming = await self._run(self._uploads.begin)
        try:
            folder = incoming.folder / name
            folder.mkdir()
            yield folder
        finally:
            with CancelScope(shield=True):
                await to_thread.run_sync(incoming.close)

    async def _received(self, request: Request, parts: Parts, room: int) -> str:
        """The content's sha256, once all of the body is on disk."""
        try:
            with anyio.fail_after(self._settings.upload_seconds):
                async for piece in self._pieces(request, room):
                    await self._run(parts.feed, piece)
        except TimeoutError:
            raise errors.SlowBody(self._settings.upload_seconds) from None
        finally:
            parts.close()
        return parts.end()

    async def _pieces(self, request: Request, room: int) -> AsyncIterator[bytes]:
        """The body in pieces of at least 1 MiB, but for the last."""
        stream, received, piece = request.stream(), 0, bytearray()
        while (chunk := await self._next(stream)) is not None:
            received += len(chunk)
            self._refuse(received, room)
            piece += chunk
            if len(piece) >= _PIECE:
                yield bytes(piece)
                piece.clear()
        if piece:
            yield bytes(piece)

    async def _next(self, stream: AsyncIterator[bytes]) -> bytes | None:
        seconds = self._settings.body_seconds
        with anyio.move_on_after(seconds) as waiting:
            return await anext(stream, None)
        if waiting.cancelled_caught:
            raise errors.SlowBody(seconds)
        return None

    def _publish(self, folder: Path, content: str, name: str) -> bool:
        self._store.kept.forget(name)  # which would hold what the name meant before
        return self._uploads.publish(folder, content, name)

    def _announced(self, request: Request) -> int:
        """How long the client says its body is, 0 where it does not say."""
        most = self._settings.upload_bytes
        announced = bodies.announced(request.headers, most, "upload_bytes") or 0
        if announced > most:
            raise errors.BodyTooLarge(most, announced, "upload_bytes")
        return announced

    def _refuse(self, received: int, room: int) -> None:
        """Raise BodyTooLarge or StoreFull where so many bytes are too many."""
        if received > self._settings.upload_bytes:
            raise errors.BodyTooLarge(self._settings.upload_bytes, name="upload_bytes")
        if received > room:
            most = self._settings.store_bytes
            raise errors.StoreFull("store_bytes", most, most - room + received)

    async def _run(self, work: Callable[[*Args], Result], *args: *Args) -> Result:
        with _full_disks():
            return await to_thread.run_sync(work, *args, limiter=self._threads)


def _boundary(request: Request) -> str:
    """What separates the parts; or UnsupportedMedia, or NotAcceptable."""
    bodies.refuse_coded(request.headers)
    media, options = parse_options_header(request.headers.get("content-type", ""))
    boundary: str = options.get("boundary", "")
    if media != MULTIPART or not (boundary.isascii() and 0 < len(boundary) <= 70):
        detail = f"Send the files of the model as {MULTIPART}, with a boundary."
        raise errors.UnsupportedMedia(detail, MULTIPART)
    bodies.acceptable(request.headers, form.JSON_ALONE)
    return boundary


def _checked(folder: Path) -> Checkpoint:
    """The model of a folder, or InvalidUpload where its files are none that can be used."""
    try:
        checkpoint = opened(folder)
        check_whole(checkpoint)
    except ComputeError as error:
        raise errors.InvalidUpload(_placed(error)) from error
    if isinstance(checkpoint.reader, Shards):
        read = {file.path.name for file in checkpoint.reader.files}
        there = {path.name for path in folder.glob("*.safetensors")}
        unread = [_unread(name) for name in sorted(there - read)]
        if unread:
            raise errors.InvalidUpload(unread)
    return checkpoint


def _placed(error: ComputeError) -> list[Fault]:
    """Faults at parts; those of a config are of its file."""
    prefix = ("config.json",) if isinstance(error, ConfigError) else ()
    inside = isinstance(error, ConfigError | ModelError)
    return faults.with_prefix(error.faults, prefix, inside)


def _unread(name: str) -> Fault:
    detail = "The index does not list this file: leave it out."
    return Fault(code="unknown_part", detail=detail, place=(name,))


@contextmanager
def _full_disks() -> Iterator[None]:
    """A full disk is no fault of the service, nor is one that it may not write to."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise errors.StoreFull from error
        if error.errno in _CLOSED:
            raise errors.UploadsOff(_UNWRITABLE) from error
        raise
