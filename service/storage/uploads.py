"""The folder of uploaded models: which names there are, and what content each one means.

    contents/{sha256}/   the files of a model; they never change
    names/{name}         a file that holds a content's sha256
    incoming/{random}/   uploads on their way, each locked by the process that takes it

The folder is the only truth, and several processes may share it: contents and names come by a
rename, whole; a content that no name means any more goes once nobody holds it.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from service import errors
from service.storage.locks import Lock, locked

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Incoming:
    """A place for one upload: a folder that nobody else touches."""

    folder: Path
    lock: Lock

    def close(self) -> None:
        """Remove it, with all that is still in it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.lock.release()


class Uploads:
    """Names and contents in a folder, which is made when something is first uploaded."""

    def __init__(self, folder: Path, *, most_bytes: int, most_models: int) -> None:
        self._folder = folder
        self._contents, self._names, self._incoming = (
            folder / part for part in ("contents", "names", "incoming")
        )
        self._most_bytes = most_bytes
        self._most_models = most_models

    def names(self) -> list[str]:
        """Every name there is."""
        return [name for name in _inside(self._names) if not name.startswith(".")]

    def content_of(self, name: str) -> str | None:
        """The content that a name means."""
        try:
            written = (self._names / name).read_text("ascii").strip()
        except (OSError, ValueError):
            return None
        return written if _SHA256.fullmatch(written) else None

    def folder_of(self, content: str) -> Path:
        """Where a content lies; a shared lock on it keeps it there."""
        return self._contents / content

    def room(self, name: str) -> int:
        """How many bytes an upload of a name may have; StoreFull where no more names fit."""
        names = {*self.names(), name}
        if len(names) > self._most_models:
            raise errors.StoreFull("store_models", self._most_models, len(names))
        return self._most_bytes - self._bytes_without(name)

    def begin(self) -> Incoming:
        """A place for an upload."""
        for folder in (self._contents, self._names, self._incoming):
            folder.mkdir(parents=True, exist_ok=True)
        with locked(self._folder):
            folder = Path(tempfile.mkdtemp(dir=self._incoming))
            return Incoming(folder, Lock(folder))

    def publish(self, folder: Path, content: str, name: str) -> bool:
        """Let a name mean the content that a folder holds; whether the name was there before.

        The folder is moved, and on disk before its name is.
        """
        for path in (*folder.iterdir(), folder):
            _sync(path)
        with locked(self._folder):
            known = self.content_of(name)
            needed = 0 if self._is_meant(content, name) else _bytes_of(folder)
            if needed > self.room(name):
                got = self._most_bytes - self.room(name) + needed
                raise errors.StoreFull("store_bytes", self._most_bytes, got)
            if not (self._contents / content).is_dir():
                folder.rename(self._contents / content)
                _sync(self._contents)
            if known != content:
                self._write(name, content)
                self._collect()
        return known is not None

    def remove(self, name: str) -> bool:
        """Take a name away; whether it was there."""
        if not self._folder.is_dir():
            return False
        with locked(self._folder):
            try:
                (self._names / name).unlink()
            except FileNotFoundError:
                return False
            _sync(self._names)
            self._collect()
        return True

    def tidy(self) -> None:
        """Remove what uploads of ended processes left, and contents that nobody needs."""
        if not self._incoming.is_dir():
            return
        with locked(self._folder):
            for left in _inside(self._incoming):
                with suppress(OSError):
                    lock = Lock(self._incoming / left, wait=False)
                    shutil.rmtree(self._incoming / left, ignore_errors=True)
                    lock.release()
            self._collect()

    def _bytes_without(self, name: str) -> int:
        """Of all contents that other names mean."""
        meant = {self.content_of(other) for other in self.names() if other != name}
        return sum(_bytes_of(self._contents / content) for content in meant if content)

    def _is_meant(self, content: str, but: str) -> bool:
        return any(self.content_of(name) == content for name in self.names() if name != but)

    def _write(self, name: str, content: str) -> None:
        descriptor, written = tempfile.mkstemp(prefix=".", dir=self._names)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.replace(written, self._names / name)
        _sync(self._names)

    def _collect(self) -> None:
        meant = set(map(self.content_of, self.names()))
        for content in _inside(self._contents):
            if content not in meant:
                self._drop(self._contents / content)
        for left in _inside(self._names):
            if left.startswith("."):  # of a process that ended while it wrote
                (self._names / left).unlink(missing_ok=True)

    def _drop(self, content: Path) -> None:
        """Remove a content, unless somebody holds it: then a later call does."""
        trash = Path(tempfile.mkdtemp(dir=self._incoming))
        with suppress(OSError):
            lock = Lock(content, wait=False)
            content.rename(trash / content.name)
            lock.release()
        shutil.rmtree(trash, ignore_errors=True)


def _inside(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _bytes_of(folder: Path) -> int:
    return sum(_sizes(folder))


def _sizes(folder: Path) -> Iterator[int]:
    for name in _inside(folder):
        with suppress(OSError):
            yield (folder / name).stat().st_size


def _sync(path: Path) -> None:
    """Have the disk hold a file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
