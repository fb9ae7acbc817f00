"""Headers: read whole, or refused at once for whatever a file says."""

import struct
import tracemalloc
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest

from compute.checkpoints.gguf.gguf_file import GgufFile
from compute.errors import ModelError
from parity_gguf.making import (
    ARRAY,
    BOOL,
    I8,
    STRING,
    U8,
    U32,
    gguf,
    head,
    info,
    padded,
    pair,
    plain,
    string,
)

_ARCH = pair("general.architecture", STRING, string("llama"))
_DATA = b"\1" * 4096


def _with(*tensors: bytes) -> bytes:
    return padded(head(len(tensors), 1) + _ARCH + b"".join(tensors)) + _DATA


def _list(kind: int, length: int, rest: bytes = b"abc") -> bytes:
    return head(0, 1) + string("k") + struct.pack("<IIQ", ARRAY, kind, length) + rest


def _aligned(value: int) -> bytes:
    key = pair("general.alignment", U32, struct.pack("<I", value))
    return padded(head(1, 1) + key + info("a", (4,), 0, 0)) + _DATA


GOOD = _with(info("a", (4, 4), 0, 0))
_NESTED = struct.pack("<IQ", ARRAY, 1) * 5000 + struct.pack("<IQ", U8, 1) + b"a"
HOSTILE = {
    "empty": b"",
    "three bytes": b"GGU",
    "another magic": b"XXXX" + GOOD[4:],
    "version 1": head(0, 0, 1) + _DATA,
    "version 99": head(0, 0, 99) + _DATA,
    "big endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0) + _DATA,
    "2^60 tensors": padded(head(2**60, 1) + _ARCH) + bytes(4096),
    "2^62 keys": head(0, 2**62) + bytes(1 << 16),
    "2^63 tensors": head(2**63, 1) + _ARCH,
    "one tensor too many": padded(head(2, 1) + _ARCH + info("a", (4, 4), 0, 0)) + _DATA,
    "string of 2^63 bytes": head(0, 1) + struct.pack("<Q", 2**63) + b"abc",
    "string of 2^64 - 1 bytes": head(0, 1) + struct.pack("<Q", 2**64 - 1) + b"abc",
    "string longer than the file": head(0, 1) + string("k") + struct.pack("<IQ", STRING, 10**6),
    "list of 10^9 bytes": _list(U8, 10**9),
    "list of 2^62 bytes": _list(U8, 2**62),
    "list of 4 million bytes of three": _list(U8, 1 << 22),
    "list of 10^9 strings": _list(STRING, 10**9, bytes(1 << 16)),
    "list of 2 million strings in 64 KiB": _list(STRING, 1 << 21, bytes(1 << 16)),
    "list of 3 million strings": _list(STRING, 3 << 20, bytes(3 << 23)),
    "lists 5000 deep": head(0, 1) + string("k") + struct.pack("<I", ARRAY) + _NESTED,
    "list of 10^9 empty lists": _list(ARRAY, 10**9, struct.pack("<IQ", U8, 0) * 10),
    "list of a type there is not": _list(99, 0),
    "5 million real bytes": _list(I8, 5_000_000, bytes(5_000_000)),
    "value of a type there is not": head(0, 1) + string("k") + struct.pack("<I", 99) + _DATA,
    "key not UTF-8": head(0, 1) + pair(b"\xff\xfe", U32, bytes(4)),
    "value not UTF-8": head(0, 1) + pair("k", STRING, string(b"\xff\xfe")),
    "tensor's name not UTF-8": _with(info(b"\xff", (4,), 0, 0)),
    "tensor's name with a newline": _with(info("a\nb", (4,), 0, 0)),
    "key of 257 characters": head(0, 1) + pair("k" * 257, U8, b"\0"),
    "key of none": head(0, 1) + pair("", U8, b"\0"),
    "key twice": head(0, 2) + _ARCH + _ARCH + _DATA,
    "tensor twice": _with(info("a", (4,), 0, 0), info("a", (4,), 0, 32)),
    "flag of 7": head(0, 1) + pair("k", BOOL, b"\7"),
    "2^31 axes": head(1, 1) + _ARCH + string("a") + struct.pack("<I", 2**31) + _DATA,
    "no axes": _with(info("a", (), 0, 0)),
    "70 axes": _with(info("a", (1,) * 70, 0, 0)),
    "length 0": _with(info("a", (0, 4), 0, 0)),
    "2^32 by 2^32": _with(info("a", (2**32, 2**32), 0, 0)),
    "sizes that wrap to 16": _with(info("a", (2**60 + 1, 16), 0, 0)),
    "length 2^40": _with(info("a", (2**40,), 0, 0)),
    "begins past the end": _with(info("a", (4, 4), 0, 10**9)),
    "begins at 2^64 - 64": _with(info("a", (4, 4), 0, 2**64 - 64)),
    "ends past the end": _with(info("a", (4, 4), 0, 4096 - 32)),
    "off the alignment": _with(info("a", (4, 4), 0, 3)),
    "one over another": _with(info("a", (4, 4), 0, 0), info("b", (4, 4), 0, 32)),
    "type 99": _with(info("a", (4, 4), 99, 0)),
    "a type that was removed": _with(info("a", (32,), 4, 0)),
    "no whole blocks": _with(info("a", (33, 2), 2, 0)),
    "alignment 0": _aligned(0),
    "alignment 3": _aligned(3),
    "alignment 2^31": _aligned(2**31),
    "alignment a string": padded(
        head(1, 1) + pair("general.alignment", STRING, string("32")) + info("a", (4,), 0, 0)
    )
    + _DATA,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_header_is_refused_at_once_and_costs_no_more_than_it_holds(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(HOSTILE[name])
    tracemalloc.start()
    started = perf_counter()
    with pytest.raises(ModelError) as refused:
        GgufFile.load(path)
    seconds = perf_counter() - started
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert all(fault.detail and fault.place[0] == "model.gguf" for fault in refused.value.faults)
    assert seconds < 1.0
    assert peak < 4 << 20  # the buffer of a mebibyte, and little else


def test_header_says_keys_and_tensors_as_torch_has_their_shapes(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    said = {"a": "b", "n": 7, "x": 1e-6, "on": True, "s": ["p", "q"]}
    path.write_bytes(gguf(said, {"w": plain(np.arange(6.0).reshape(2, 3))}))
    file, keys = GgufFile.load(path)
    assert keys == said
    assert file.entries["w"].shape == (2, 3)
    assert file.read("w").tolist() == [[0, 1, 2], [3, 4, 5]]


def test_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = gguf({"a": "b", "s": ["p", "q"]}, {"w": plain(np.ones((2, 8)))})
    path = tmp_path / "model.gguf"
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(ModelError):
            GgufFile.load(path)


def test_flipped_bytes_are_read_or_refused_and_nothing_else(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    whole = gguf({"general.architecture": "llama", "s": ["p", "qq"]}, {"w": plain(np.ones((2, 8)))})
    path = tmp_path / "model.gguf"
    for _ in range(2000):
        broken = bytearray(whole)
        for at in rng.integers(0, len(whole) - 64, rng.integers(1, 4)):
            broken[at] = rng.choice([0, 1, 127, 128, 255, rng.integers(256)])
        path.write_bytes(broken)
        try:
            file, _ = GgufFile.load(path)
        except ModelError:
            continue
        assert all(entry.begin + entry.bytes <= len(whole) for entry in file.entries.values())
