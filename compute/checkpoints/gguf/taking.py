"""Bytes of a file's header, taken one after another, never more than there are."""

import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from compute.checkpoints.faults import refused, shown
from compute.checkpoints.header import LONGEST_NAME
from compute.errors import ModelError

MOST_HEADER_BYTES = 1 << 26
LONGEST_STRING = 1 << 24
LONGEST_ARRAY = 1 << 22
MOST_STRINGS = 1 << 21

Value = int | float | bool | str | list[str] | npt.NDArray[Any]

_NUMBERS: Mapping[int, str] = {
    0: "<u1",
    1: "<i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
_BOOL, _STRING, _ARRAY = 7, 8, 9
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")


class Taking:
    """What is left of a header, and what is taken of it."""

    def __init__(self, file: BinaryIO, file_bytes: int, name: str) -> None:
        self.at = 0
        self._file = file
        self._end = min(file_bytes, MOST_HEADER_BYTES)
        self._name = name
        self._strings_left = MOST_STRINGS

    def bytes(self, count: int) -> bytes:
        """The next so many bytes, which there are."""
        if count > self._end - self.at:
            raise self.refused(f"ends within its header, of at most {MOST_HEADER_BYTES} bytes.")
        self.at += count
        found = self._file.read(count)
        if len(found) < count:
            raise self.refused("ends within its header.")
        return found

    def u32(self) -> int:
        """A whole number of 4 bytes."""
        return int(_U32.unpack(self.bytes(4))[0])

    def u64(self) -> int:
        """A whole number of 8 bytes."""
        return int(_U64.unpack(self.bytes(8))[0])

    def string(self) -> str:
        """A length, then so many bytes of UTF-8."""
        length = self.u64()
        if length > LONGEST_STRING:
            raise self.refused(f"has a string of more than {LONGEST_STRING} bytes.")
        try:
            return self.bytes(length).decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.refused("has a string that is not UTF-8.") from error

    def name(self) -> str:
        """A string that is short and printable."""
        found = self.string()
        if not 1 <= len(found) <= LONGEST_NAME or not (found.isascii() and found.isprintable()):
            told = f"has a name that is not 1 to {LONGEST_NAME} printable characters: "
            raise self.refused(f"{told}{shown(found)}.")
        return found

    def value(self) -> Value:
        """A type, then a value of it: a number, true or false, a string, or a list of one type."""
        kind = self.u32()
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self._array(self.u32(), self.u64())
        if kind == _BOOL:
            return bool(self._flags(1)[0])
        if kind not in _NUMBERS:
            raise self.refused(f"has a value of type {kind}, which there is not.")
        number = self._numbers(kind, 1)[0]
        return _shortest(number) if kind == 6 else number.item()

    def refused(self, detail: str) -> ModelError:
        """The file refused by its name."""
        return refused(self._name, f"{self._name} {detail}")

    def _array(self, kind: int, length: int) -> Value:
        if length > LONGEST_ARRAY:
            raise self.refused(f"has a list of more than {LONGEST_ARRAY} values.")
        if kind == _STRING:
            return self._strings(length)
        if kind == _BOOL:
            return self._flags(length)
        if kind not in _NUMBERS:
            raise self.refused(f"has a list of type {kind}, which is not read.")
        return self._numbers(kind, length)

    def _strings(self, length: int) -> list[str]:
        self._strings_left -= length
        if self._strings_left < 0 or 8 * length > self._end - self.at:
            raise self.refused(f"has fewer strings than it says, or more than {MOST_STRINGS}.")
        return [self.string() for _ in range(length)]

    def _flags(self, length: int) -> npt.NDArray[Any]:
        found = np.frombuffer(self.bytes(length), np.uint8)
        if length and found.max() > 1:
            raise self.refused("has a flag that is neither 0 nor 1.")
        return found.astype(np.bool_)

    def _numbers(self, kind: int, length: int) -> npt.NDArray[Any]:
        dtype = np.dtype(_NUMBERS[kind])
        return np.frombuffer(self.bytes(length * dtype.itemsize), dtype)


def _shortest(number: Any) -> float:  # noqa: ANN401 - a NumPy float32
    """The shortest decimal that a float32 is nearest to: 1e-06 again where 1e-06 was stored."""
    return float(str(number))
