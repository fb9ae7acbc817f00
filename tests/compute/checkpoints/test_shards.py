"""Tensors in one file or several with an index; what is wrong with the index is told."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkpoint_files import header, of_arrays, of_header
from compute.checkpoints import shards
from compute.errors import ModelError

A, B = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    (tmp_path / A).write_bytes(of_arrays({"a": np.arange(3.0), "b": np.arange(4.0)}))
    (tmp_path / B).write_bytes(of_arrays({"c": np.arange(5.0)}))
    _index(lambda raw: raw)(tmp_path)
    return tmp_path


def _index(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        weight_map: dict[str, Any] = {"a": A, "b": A, "c": B}
        change(weight_map)
        raw = {"metadata": {"total_size": 48}, "weight_map": weight_map}
        (path / shards.INDEX).write_text(json.dumps(raw))

    return write


def _text(content: str) -> Callable[[Path], object]:
    return lambda path: (path / shards.INDEX).write_text(content)


BREAKS: dict[str, Callable[[Path], object]] = {
    "no index": lambda path: (path / shards.INDEX).unlink(),
    "not JSON": _text("{"),
    "no map": _text("{}"),
    "map a list": _text('{"weight_map": []}'),
    "map empty": _text('{"weight_map": {}}'),
    "twice": _text(f'{{"weight_map": {{"a": "{A}", "a": "{B}"}}}}'),
    "file gone": lambda path: (path / B).unlink(),
    "file broken": lambda path: (path / B).write_bytes(b""),
    "out of the folder": _index(lambda raw: raw.update(c=f"../{B}")),
    "absolute": _index(lambda raw: raw.update(c=f"/{B}")),
    "hidden": _index(lambda raw: raw.update(c=".safetensors")),
    "backslash": _index(lambda raw: raw.update(c=f"..\\{B}")),
    "line": _index(lambda raw: raw.update(c=f"{B}\n")),
    "pickle": _index(lambda raw: raw.update(c="pytorch_model-00001.bin")),
    "number": _index(lambda raw: raw.update(c=3)),
    "tensor in no file": _index(lambda raw: raw.update(d=B)),
    "tensor in another file": _index(lambda raw: raw.update(b=B)),
    "tensor not listed": _index(lambda raw: raw.pop("b")),
    "many files": _index(lambda raw: raw.update({f"t{i}": f"{i}.safetensors" for i in range(600)})),
    "many tensors": _index(lambda raw: raw.update({f"t{i}": A for i in range(70_000)})),
}


@pytest.mark.parametrize("name", sorted(BREAKS))
def test_broken_index_is_refused(sharded: Path, name: str) -> None:
    BREAKS[name](sharded)
    with pytest.raises(ModelError) as refused:
        shards.load(sharded)
    assert all(fault.place and fault.detail.isprintable() for fault in refused.value.faults)


def test_tensors_of_all_shards_are_read(sharded: Path) -> None:
    found = shards.load(sharded)
    assert {name: found.read(name).size for name in found.entries} == {"a": 3, "b": 4, "c": 5}
    assert [file.path.name for file in found.files] == [A, B]
    assert found.bytes_of("c", 4, 8) == np.float32(1).tobytes()


def test_one_file_goes_before_an_index(sharded: Path) -> None:
    (sharded / shards.WHOLE).write_bytes(of_arrays({"whole": np.zeros(1)}))
    assert list(shards.load(sharded).entries) == ["whole"]


def test_shards_together_hold_no_more_tensors_than_a_file(sharded: Path) -> None:
    for name in (A, B):
        raw = header({f"{name[7]}{name[9:11]}{i}": ("F32", (0,)) for i in range(20_000)})
        (sharded / name).write_bytes(of_header(raw))
    with pytest.raises(ModelError, match="more than 32768 tensors"):
        shards.load(sharded)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.ckpt"])
def test_pickle_alone_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(ModelError, match=f"{name} is a pickle"):
        shards.load(tmp_path)
