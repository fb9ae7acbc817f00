"""A safetensors file: its header at once, its tensors one by one when they are asked for.

Tensors are read piece by piece into an array of their own, never mapped: a file that shrinks
under a map kills the process, under a read it is an error.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

from compute.checkpoints.faults import refused
from compute.checkpoints.header import MOST_HEADER_BYTES, Entry, header_length, read_entries
from compute.errors import ModelError
from compute.types import Array

FLOATS: Mapping[str, tuple[str, str]] = {
    "F64": ("<f8", "float64"),
    "F32": ("<f4", "float32"),
    "F16": ("<f2", "float32"),
    "BF16": ("<u2", "float32"),
}
"""dtype of a weight -> how its bytes are read, and what its numbers become, exactly."""

_PIECE = 1 << 18  # numbers whose bytes and values stay in the cache


class Reader(Protocol):
    """Tensors by name: what they are at once, what they hold when it is asked for."""

    @property
    def entries(self) -> Mapping[str, Entry]:
        """Every tensor there is."""

    def read(self, name: str) -> Array:
        """A tensor's numbers, of its shape; a ModelError where one of them is not finite."""

    def check(self, name: str) -> None:
        """Read a tensor and keep nothing; a ModelError where one of its numbers is not finite."""

    def bytes_of(self, name: str, begin: int, end: int) -> bytes:
        """Some of the bytes of a tensor as stored."""


@dataclass(frozen=True, slots=True)
class Mark:
    """By what a file is known again: another one under its name is not read."""

    device: int
    inode: int
    bytes: int
    changed: int

    @staticmethod
    def of(file: FileIO | BinaryIO) -> "Mark":
        """The mark of an open file."""
        found = os.fstat(file.fileno())
        return Mark(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@dataclass(frozen=True, slots=True, eq=False)
class SafetensorsFile:
    """An open question to a file: nothing is held but its header."""

    path: Path
    mark: Mark
    header: bytes
    entries: Mapping[str, Entry]

    @staticmethod
    def load(path: Path, most: int = MOST_HEADER_BYTES) -> "SafetensorsFile":
        """A file by its header of at most so many bytes, or a ModelError with what is wrong."""
        try:
            with path.open("rb", buffering=0) as file:
                mark = Mark.of(file)
                length = header_length(file.read(8), mark.bytes, path.name, most)
                content = file.read(length)
        except OSError as error:
            raise refused(path.name, f"{path.name} cannot be read.") from error
        return SafetensorsFile(path, mark, content, read_entries(content, mark.bytes, path.name))

    def read(self, name: str) -> Array:
        """A tensor's numbers: float64 as float64, all others as float32."""
        entry = self.entries[name]
        values = np.empty(entry.size, FLOATS[entry.dtype][1])
        self._read_through(name, lambda start: values[start : start + _PIECE])
        return values.reshape(entry.shape)

    def check(self, name: str) -> None:
        """Read a tensor and keep nothing; a ModelError where one of its numbers is not finite."""
        entry = self.entries[name]
        piece = np.empty(min(entry.size, _PIECE), FLOATS[entry.dtype][1])
        self._read_through(name, lambda start: piece[: entry.size - start])

    def _read_through(self, name: str, piece_at: Callable[[int], Array]) -> None:
        """Fill and look at each piece of a tensor, from its start to its end."""
        entry = self.entries[name]
        stored = np.dtype(FLOATS[entry.dtype][0])
        with self._open() as file, np.errstate(over="ignore", invalid="ignore"):
            file.seek(entry.begin)
            for start in range(0, entry.size, _PIECE):
                piece = piece_at(start)
                self._fill(piece, stored, file)
                self._refuse_what_is_not_finite(piece, name)

    def bytes_of(self, name: str, begin: int, end: int) -> bytes:
        """The bytes of a tensor from one to another, as stored."""
        entry = self.entries[name]
        with self._open() as file:
            file.seek(entry.begin + begin)
            return file.read(min(end, entry.bytes) - begin)

    def _open(self) -> FileIO:
        try:
            file = self.path.open("rb", buffering=0)
        except OSError as error:
            raise self._changed() from error
        if Mark.of(file) != self.mark:
            file.close()
            raise self._changed()
        return file

    def _fill(self, piece: Array, stored: np.dtype[Any], file: FileIO) -> None:
        """The next numbers of a file. bfloat16 is the upper half of a float32."""
        if stored == piece.dtype:
            self._read_into(piece, file)
            return
        raw = np.empty(piece.size, stored)
        self._read_into(raw, file)
        if stored.kind == "u":
            bits = piece.view(np.uint32)
            bits[...] = raw
            bits <<= 16
        else:
            piece[...] = raw

    def _read_into(self, array: npt.NDArray[Any], file: FileIO) -> None:
        left = array.view(np.uint8).data
        while left:
            count = file.readinto(left)
            if not count:
                raise self._changed()
            left = left[count:]

    def _refuse_what_is_not_finite(self, piece: Array, name: str) -> None:
        """The sum of finite numbers is finite, or too large: then each is looked at."""
        if not np.isfinite(np.add.reduce(piece)) and not np.isfinite(piece).all():
            raise refused((self.path.name, name), f"{name} holds what is no finite number.")

    def _changed(self) -> ModelError:
        name = self.path.name
        return refused(name, f"{name} is not the file any more that it was when it was loaded.")
