"""The model store: models that ship, folders of models, uploads. Looked up anew each time.

Nothing is known but what lies there now: a model that comes, changes or goes does so without a
restart. What was opened is kept while it is the same (`kept`).
"""

import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from compute import tensors
from compute.checkpoints.checkpoint import Checkpoint
from compute.checkpoints.folder import TOKENIZER
from compute.checkpoints.gguf.gguf_file import GgufFile
from compute.checkpoints.header import Entry
from compute.checkpoints.safetensors_file import Reader
from compute.errors import ComputeError, Place
from compute.types import Array, DType
from compute.weights import ModelWeights
from schemas.models import ModelLine, Origin
from service import errors
from service.errors import UnknownModel
from service.settings import Settings
from service.storage import roots
from service.storage.kept import Kept, Stamp
from service.storage.locks import Lock
from service.storage.opening import opened
from service.storage.roots import Root
from service.storage.uploads import Uploads

_log = logging.getLogger("glassblock")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

_AN_ENTRY = 2048
_A_TEXT_BYTE = 15
"""About what is held for a tensor of a header, and for a byte of a tokenizer.json or a header."""


@dataclass(frozen=True, slots=True)
class Found:
    """Where a model lies now; `content` of an upload."""

    name: str
    origin: Origin
    path: Path
    stamp: Stamp
    content: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class _HeldReader:
    """Reads from an upload that stays on disk for as long as this does."""

    reader: Reader
    lock: Lock

    @property
    def entries(self) -> Mapping[str, Entry]:
        """Every tensor there is."""
        return self.reader.entries

    def read(self, name: str) -> Array:
        """A tensor's numbers."""
        return self.reader.read(name)

    def check(self, name: str) -> None:
        """Read a tensor and keep nothing."""
        self.reader.check(name)

    def bytes_of(self, name: str, begin: int, end: int) -> bytes:
        """Some of the bytes of a tensor as stored."""
        return self.reader.bytes_of(name, begin, end)


class Store:
    """Models by name. Of one name in two places the first counts: those that ship, then the
    folders in their order, then uploads."""

    def __init__(self, settings: Settings) -> None:
        self._roots = [Root(roots.shipped(), "shipped"), *map(roots.root, settings.models)]
        self.uploads = _uploads(settings)
        self.kept = Kept(settings.kept_bytes)
        self._room = max(settings.kept_bytes, settings.memory_bytes)
        self._lines: dict[str, tuple[Stamp, ModelLine | str]] = {}
        for root in self._roots[1:]:
            if root.trouble:
                _log.warning("GLASSBLOCK_MODELS: %s %s.", ascii(str(root.path)), root.trouble)

    def names(self) -> list[str]:
        """All models there are now, by name."""
        found = set(filter(is_name, self._names_on_disk()))
        return sorted(found.union(() if self.uploads is None else self.uploads.names()))

    def find(self, name: str) -> Found | None:
        """Where the model of a name lies now."""
        if not is_name(name):
            return None
        return next(self._found(name), None)

    def get(self, name: str, place: Place = ("model", "name")) -> Checkpoint:
        """The model of a name, or UnknownModel; `place` is where a body named it."""
        fresh = self.kept.fresh(name)
        if fresh is not None:
            return fresh
        for _ in range(2):  # an upload may be replaced between a look and another
            found = self.find(name)
            if found is None:
                break
            kept = self.kept.checkpoint(name, found.stamp)
            if kept is not None:
                return kept
            try:
                checkpoint = _open(found)
            except FileNotFoundError:
                continue
            self.kept.keep(name, found.stamp, checkpoint, _size(checkpoint, found))
            return checkpoint
        self.kept.forget(name)
        raise UnknownModel(name, self.names(), place)

    def packed(self, checkpoint: Checkpoint, dtype: DType) -> ModelWeights:
        """A checkpoint's weights as the equations want them, kept as far as there is room."""
        return self.kept.weights(checkpoint, dtype)

    def make_room(self, needed: int, checkpoint: Checkpoint | None, dtype: DType) -> None:
        """Before a run that needs so many bytes, its model's weights among them: with what is
        kept it has no more than kept_bytes or memory_bytes, whichever is larger."""
        own = "" if checkpoint is None else checkpoint.name
        self.kept.make_room(needed, self._room, own, dtype)

    def settle(self, checkpoint: Checkpoint | None, dtype: DType) -> None:
        """After a run: keep what it fetched, as far as there is room."""
        if checkpoint is not None:
            self.kept.settle(checkpoint.name, dtype)

    def lines(self) -> tuple[list[ModelLine], dict[str, str]]:
        """A line for every model that can be opened, by name; and why others cannot."""
        places = [found for found in map(self.find, self.names()) if found is not None]
        told = {found.name: self._line(found) for found in places}
        self._lines = {x.name: (x.stamp, told[x.name]) for x in places}
        lines = [line for line in told.values() if isinstance(line, ModelLine)]
        broken = {name: why for name, why in told.items() if isinstance(why, str)}
        return lines, {**broken, **self._misnamed()}

    def refuse_if_fixed(self, name: str) -> None:
        """Raise FixedModel for a model that was not uploaded."""
        found = self.find(name)
        if found is not None and found.origin != "uploaded":
            raise errors.FixedModel(found.origin)

    def remove(self, name: str) -> None:
        """Remove an uploaded model; FixedModel for another, UnknownModel where there is none."""
        self.refuse_if_fixed(name)
        self.kept.forget(name)
        there = self.find(name) is not None and self.uploads is not None
        if not (there and self.uploads is not None and self.uploads.remove(name)):
            raise UnknownModel(name, self.names(), ())

    def tidy(self) -> None:
        """Let go what has changed or is gone, and what ended uploads left on disk."""
        for name, stamp in self.kept.stamps().items():
            found = self.find(name)
            if found is None or found.stamp != stamp:
                self.kept.forget(name)
        if self.uploads is not None:
            self.uploads.tidy()

    def _found(self, name: str) -> Iterator[Found]:
        for root in self._roots:
            for path, stamp in root.find(name):
                yield Found(name, root.origin, path, (str(path), *stamp))
        content = None if self.uploads is None else self.uploads.content_of(name)
        if self.uploads is not None and content is not None:
            path = self.uploads.folder_of(content)
            if os.path.isdir(path):
                yield Found(name, "uploaded", path, (content,), content)

    def _names_on_disk(self) -> Iterator[str]:
        return (name for root in self._roots for name in root.names())

    def _misnamed(self) -> dict[str, str]:
        """Models that no request can name, as far as a name can be shown, and why not."""
        names = sorted(name for name in set(self._names_on_disk()) if not is_name(name))
        return {x if x.isprintable() else ascii(x)[1:-1]: errors.NAME_RULE for x in names}

    def _line(self, found: Found) -> ModelLine | str:
        stamp, known = self._lines.get(found.name, ((), ""))
        return known if stamp == found.stamp else _described(found)


def is_name(name: str) -> bool:
    """Whether a model can have this name."""
    return _NAME.fullmatch(name) is not None


def _uploads(settings: Settings) -> Uploads | None:
    if settings.uploads is None:
        return None
    return Uploads(
        settings.uploads, most_bytes=settings.store_bytes, most_models=settings.store_models
    )


def _open(found: Found) -> Checkpoint:
    """The model, held on disk where it was uploaded; FileNotFoundError where that is gone."""
    if not found.content:
        return replace(opened(found.path), name=found.name)
    lock = Lock(found.path, shared=True)
    checkpoint = opened(found.path)
    return replace(checkpoint, name=found.name, reader=_HeldReader(checkpoint.reader, lock))


def _described(found: Found) -> ModelLine | str:
    """A model's line, or why it has none."""
    try:
        checkpoint = _open(found)
    except ComputeError as error:
        return str(error)
    except Exception:  # one folder must not hide the others
        _log.exception("%s cannot be opened.", found.name)
        return "It cannot be opened; the service's log says why."
    config = checkpoint.config
    return ModelLine(
        name=found.name,
        family=checkpoint.family,
        origin=found.origin,
        d_model=config.d_model,
        n_layers=config.n_layers,
        vocab=config.vocab,
        parameters=tensors.parameter_counts(config)["total"],
    )


def _size(checkpoint: Checkpoint, found: Found) -> int:
    """About how many bytes an opened model holds: its headers, its tokenizer."""
    text = 0 if checkpoint.text is None else _text_bytes(found.path, checkpoint.reader)
    return _AN_ENTRY * len(checkpoint.reader.entries) + _A_TEXT_BYTE * text


def _text_bytes(path: Path, reader: Reader) -> int:
    inner = reader.reader if isinstance(reader, _HeldReader) else reader
    if isinstance(inner, GgufFile):
        return inner.header_bytes
    return (path / TOKENIZER).stat().st_size
