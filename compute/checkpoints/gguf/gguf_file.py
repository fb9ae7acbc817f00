"""A GGUF file: its header at once, its tensors one by one, as float32, when they are asked for.

Read piece by piece, never mapped: a file that shrinks under a map kills the process.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from compute.checkpoints.faults import refused
from compute.checkpoints.gguf.header import Packed, read_header
from compute.checkpoints.gguf.quantized import dequantized
from compute.checkpoints.gguf.taking import Value
from compute.checkpoints.safetensors_file import Mark
from compute.errors import ModelError
from compute.types import Array

_PIECE = 1 << 18  # weights whose blocks and numbers stay in the cache


@dataclass(frozen=True, slots=True, eq=False)
class GgufFile:
    """An open question to a file: nothing is held but what its header lists."""

    path: Path
    mark: Mark
    header_bytes: int
    entries: Mapping[str, Packed]

    @staticmethod
    def load(path: Path) -> "tuple[GgufFile, Mapping[str, Value]]":
        """A file by its header, and the header's keys; or a ModelError with what is wrong."""
        try:
            with path.open("rb", buffering=1 << 20) as file:
                mark = Mark.of(file)
                header = read_header(file, mark.bytes, path.name)
        except OSError as error:
            raise refused(path.name, f"{path.name} cannot be read.") from error
        return GgufFile(path, mark, header.bytes, header.entries), header.keys

    def keys(self) -> Mapping[str, Value]:
        """The header's keys, read again."""
        again, keys = GgufFile.load(self.path)
        if again.mark != self.mark:
            raise self._changed()
        return keys

    def read(self, name: str) -> Array:
        """A tensor's numbers in float32, of its shape, some whole rows at a time."""
        entry = self.entries[name]
        values = np.empty((entry.size // entry.shape[-1], entry.shape[-1]), np.float32)
        for first, piece in self._pieces(name):
            values[first : first + len(piece)] = piece
        return values.reshape(entry.shape)

    def check(self, name: str) -> None:
        """Read a tensor and keep nothing; a ModelError where one of its numbers is not finite."""
        for _ in self._pieces(name):
            pass

    def _pieces(self, name: str) -> Iterator[tuple[int, Array]]:
        """(first row, some whole rows in float32) from a tensor's start to its end."""
        entry = self.entries[name]
        columns = entry.shape[-1]
        rows, step = entry.size // columns, max(_PIECE // columns, 1)
        width = columns // entry.kind.weights * entry.kind.bytes
        with self._open() as file:
            file.seek(entry.begin)
            for first in range(0, rows, step):
                raw = np.empty((min(step, rows - first), width), np.uint8)
                self._read_into(raw, file)
                piece = dequantized(raw, entry.kind)
                if not np.isfinite(piece).all():
                    raise refused((self.path.name, name), f"{name} holds what is no finite number.")
                yield first, piece

    def bytes_of(self, name: str, begin: int, end: int) -> bytes:
        """The bytes of a tensor from one to another, as stored."""
        entry = self.entries[name]
        with self._open() as file:
            file.seek(entry.begin + begin)
            return file.read(min(end, entry.bytes) - begin)

    def header(self) -> bytes:
        """The header's bytes, read again."""
        with self._open() as file:
            return file.read(self.header_bytes)

    def _open(self) -> FileIO:
        try:
            file = self.path.open("rb", buffering=0)
        except OSError as error:
            raise self._changed() from error
        if Mark.of(file) != self.mark:
            file.close()
            raise self._changed()
        return file

    def _read_into(self, array: npt.NDArray[Any], file: FileIO) -> None:
        left = array.data.cast("B")
        while left:
            count = file.readinto(left)
            if not count:
                raise self._changed()
            left = left[count:]

    def _changed(self) -> ModelError:
        name = self.path.name
        return refused(name, f"{name} is not the file any more that it was when it was loaded.")
