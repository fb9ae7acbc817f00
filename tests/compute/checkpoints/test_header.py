"""Headers of safetensors files: every hostile one is refused before anything else is read."""

import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from checkpoint_files import header, of_header, with_header
from compute.checkpoints.header import MOST_HEADER_BYTES, MOST_TENSORS, Entry
from compute.checkpoints.safetensors_file import SafetensorsFile
from compute.errors import MOST_FAULTS, ModelError


def entry(dtype: object = "F32", shape: object = (2,), offsets: object = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


DATA = bytes(8)
HOSTILE: dict[str, bytes] = {
    "empty": b"",
    "seven bytes": bytes(7),
    "no header": bytes(8),
    "header longer than the file": (1 << 20).to_bytes(8, "little") + b"{}",
    "header of 2^64 bytes": b"\xff" * 8 + b"{}",
    "negative length as signed": (1 << 63).to_bytes(8, "little") + b"{}",
    "not UTF-8": with_header(b'{"\xff": 1}'),
    "not JSON": with_header(b"{a: 1}"),
    "cut JSON": with_header(b'{"a": {"dtype"'),
    "a list": with_header(b"[]"),
    "a number": with_header(b"3"),
    "null": with_header(b"null"),
    "NaN": with_header(b'{"a": NaN}'),
    "deep": with_header(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "a name twice": with_header(
        b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},'
        b'"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
    ),
    "a key twice": with_header(
        b'{"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
    ),
    "metadata a list": of_header({"__metadata__": []}),
    "metadata of numbers": of_header({"__metadata__": {"format": 1}}),
    "entry a list": of_header({"a": []}),
    "entry null": of_header({"a": None}),
    "no dtype": of_header({"a": {"shape": [2], "data_offsets": [0, 8]}}, DATA),
    "one key more": of_header({"a": {**entry(), "more": 1}}, DATA),
    "unknown dtype": of_header({"a": entry("F8_E4M3", [8])}, DATA),
    "dtype a list": of_header({"a": entry(["F32"])}, DATA),
    "dtype in lower case": of_header({"a": entry("f32")}, DATA),
    "shape no list": of_header({"a": entry(shape=2)}, DATA),
    "shape of floats": of_header({"a": entry(shape=[2.0])}, DATA),
    "shape of flags": of_header({"a": entry(shape=[True, 2])}, DATA),
    "shape of strings": of_header({"a": entry(shape=["2"])}, DATA),
    "negative length": of_header({"a": entry(shape=[-2, -1])}, DATA),
    "length past int64": of_header({"a": entry(shape=[1 << 70])}, DATA),
    "length past float64": of_header({"a": entry(shape=[10**400])}, DATA),
    "nine axes": of_header({"a": entry(shape=[1] * 8 + [2])}, DATA),
    "shape too small": of_header({"a": entry(shape=[1])}, DATA),
    "shape too large": of_header({"a": entry(shape=[3])}, DATA),
    "product past int64": of_header({"a": entry(shape=[1 << 40, 1 << 40])}, DATA),
    "one offset": of_header({"a": entry(offsets=[8])}, DATA),
    "three offsets": of_header({"a": entry(offsets=[0, 4, 8])}, DATA),
    "offsets back": of_header({"a": entry(offsets=[8, 0])}, DATA),
    "offsets negative": of_header({"a": entry(offsets=[-8, 0])}, DATA),
    "offsets of floats": of_header({"a": entry(offsets=[0.0, 8.0])}, DATA),
    "past the end": of_header({"a": entry(offsets=[8, 16])}, DATA),
    "bytes before the first": of_header({"a": entry(shape=[1], offsets=[4, 8])}, DATA),
    "bytes after the last": of_header({"a": entry(shape=[1], offsets=[0, 4])}, DATA),
    "a gap": of_header({"a": entry("U8", [2], [0, 2]), "b": entry("U8", [5], [3, 8])}, DATA),
    "an overlap": of_header({"a": entry("U8", [5], [0, 5]), "b": entry("U8", [4], [4, 8])}, DATA),
    "the same bytes twice": of_header({"a": entry(), "b": entry()}, DATA),
    "data cut": of_header({"a": entry()}, DATA[:-1]),
    "data longer": of_header({"a": entry()}, DATA + b"\0"),
    "empty name": of_header({"": entry()}, DATA),
    "name of a line": of_header({"a\nb": entry()}, DATA),
    "name with NUL": of_header({"a\0": entry()}, DATA),
    "name with a lone surrogate": of_header({"\ud800": entry()}, DATA),
    "name right to left": of_header({"\u202ea": entry()}, DATA),
    "long name": of_header({"a" * 257: entry()}, DATA),
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_file_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(ModelError) as refused:
        SafetensorsFile.load(path)
    for fault in refused.value.faults:
        assert fault.place[0] == "model.safetensors"
        assert fault.detail.isprintable()
        assert len(fault.detail) < 600


def test_what_a_header_says_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    raw = header({"a.b": ("BF16", (2, 3)), "none": ("F32", (0, 4)), "one": ("F64", ())})
    raw["__metadata__"] = {"format": "pt", "json": '{"a": {}}'}
    path.write_bytes(of_header(raw, bytes(20)))
    found = SafetensorsFile.load(path)
    start = 8 + len(found.header)
    assert found.entries == {
        "a.b": Entry("BF16", (2, 3), start),
        "none": Entry("F32", (0, 4), start + 12),
        "one": Entry("F64", (), start + 12),
    }
    assert [entry.bytes for entry in found.entries.values()] == [12, 0, 8]


def test_order_in_the_header_is_free(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    late, early = entry("U8", [3], [5, 8]), entry("U8", [5], [0, 5])
    path.write_bytes(of_header({"late": late, "empty": entry("U8", [0], [5, 5]), "a": early}, DATA))
    assert list(SafetensorsFile.load(path).entries) == ["late", "empty", "a"]


def test_many_faults_are_told_up_to_a_cap(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(of_header({f"t{i}": entry("F7") for i in range(500)}, DATA))
    with pytest.raises(ModelError) as refused:
        SafetensorsFile.load(path)
    assert len(refused.value.faults) == MOST_FAULTS


FLOODS = {
    "empty tensors": lambda: json.dumps(
        {f"t{i}": entry("F32", [0], [0, 0]) for i in range(200_000)}, separators=(",", ":")
    ).encode(),
    "pairs": lambda: b'{"a":{' + b'"":0,' * 3_000_000 + b'"":0}}',
    "lengths": lambda: b'{"a":[' + b"1," * 8_000_000 + b"1]}",
    "objects": lambda: b'{"a":[' + b"{}," * 5_000_000 + b"{}]}",
    "header too long": lambda: b" " * (MOST_HEADER_BYTES + 1),
}


@pytest.mark.parametrize("name", sorted(FLOODS))
def test_flood_is_refused_within_a_second_and_little_memory(tmp_path: Path, name: str) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(with_header(FLOODS[name]()))
    tracemalloc.start()
    began = time.monotonic()
    with pytest.raises(ModelError):
        SafetensorsFile.load(path)
    took = time.monotonic() - began
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert took < 1.0
    assert peak < MOST_HEADER_BYTES + (1 << 20)  # the header's bytes themselves


def test_as_many_tensors_as_are_allowed_are_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    raw = {f"t{i}": entry("F32", [0], [0, 0]) for i in range(MOST_TENSORS)}
    path.write_bytes(of_header(raw))
    assert len(SafetensorsFile.load(path).entries) == MOST_TENSORS


def test_any_byte_changed_in_a_header_is_read_or_refused(tmp_path: Path) -> None:
    raw = header({"a": ("F32", (2, 3)), "b": ("BF16", (4,))})
    whole = of_header(raw, bytes(32))
    path = tmp_path / "model.safetensors"
    for at in range(len(whole) - 32):
        for flip in (0x01, 0x10, 0x80, 0xFF):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :])
            try:
                found = SafetensorsFile.load(path).entries
            except ModelError:
                continue
            assert sum(each.bytes for each in found.values()) == 32
