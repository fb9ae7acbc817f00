"""GGUF files byte by byte, right ones and wrong ones, written without what reads them."""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from compute.checkpoints.gguf.gguf_file import GgufFile

Tensor = tuple[int, tuple[int, ...], bytes]
"""Type, lengths with the last axis first, bytes."""

U8, I8, U32, F32, BOOL, STRING, ARRAY = 0, 1, 4, 6, 7, 8, 9
_TYPE_OF = {"b": BOOL, "f": F32, "i": 5, "u": U32}


def string(text: str | bytes) -> bytes:
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw)) + raw


def pair(key: str | bytes, kind: int, value: bytes) -> bytes:
    return string(key) + struct.pack("<I", kind) + value


def head(n_tensors: int, n_keys: int, version: int = 3, magic: bytes = b"GGUF") -> bytes:
    return magic + struct.pack("<IQQ", version, n_tensors, n_keys)


def info(name: str | bytes, lengths: tuple[int, ...], kind: int, offset: int) -> bytes:
    """A tensor as listed."""
    counted = struct.pack("<I", len(lengths)) + b"".join(struct.pack("<Q", x) for x in lengths)
    return string(name) + counted + struct.pack("<IQ", kind, offset)


def padded(raw: bytes, alignment: int = 32) -> bytes:
    return raw + bytes(-len(raw) % alignment)


def encoded(key: str, value: object) -> bytes:
    """A key and its value, of the type that Python's value has."""
    if isinstance(value, str):
        return pair(key, STRING, string(value))
    if isinstance(value, bool):
        return pair(key, BOOL, struct.pack("<B", value))
    if isinstance(value, int):
        return pair(key, U32, struct.pack("<I", value))
    if isinstance(value, float):
        return pair(key, F32, struct.pack("<f", value))
    if isinstance(value, list):
        listed = b"".join(string(x) for x in value)
        return pair(key, ARRAY, struct.pack("<IQ", STRING, len(value)) + listed)
    array = np.asarray(value)
    kind = _TYPE_OF[array.dtype.kind]
    raw = array.astype({BOOL: "u1", F32: "<f4", 5: "<i4", U32: "<u4"}[kind]).tobytes()
    return pair(key, ARRAY, struct.pack("<IQ", kind, len(array)) + raw)


def gguf(keys: Mapping[str, object], tensors: Mapping[str, Tensor]) -> bytes:
    """A whole file."""
    listed, data = b"", b""
    for name, (kind, lengths, raw) in tensors.items():
        listed += info(name, lengths, kind, len(data))
        data = padded(data + raw)
    said = b"".join(encoded(key, value) for key, value in keys.items())
    return padded(head(len(tensors), len(keys)) + said + listed) + data


def plain(values: npt.NDArray[Any]) -> Tensor:
    """A tensor of F32."""
    return 0, values.shape[::-1], values.astype("<f4").tobytes()


def opened(path: Path) -> tuple[dict[str, object], dict[str, npt.NDArray[Any]]]:
    """The keys and the numbers of a file, to be changed."""
    file, keys = GgufFile.load(path)
    return dict(keys), {name: file.read(name) for name in file.entries}


def written(path: Path, keys: Mapping[str, object], values: Mapping[str, npt.NDArray[Any]]) -> Path:
    """A file of F32 with these keys and numbers."""
    path.write_bytes(gguf(keys, {name: plain(x) for name, x in values.items()}))
    return path
