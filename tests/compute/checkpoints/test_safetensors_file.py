"""Tensors of a safetensors file, each read when it is asked for."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from checkpoint_files import header, of_header
from compute.checkpoints import safetensors_file
from compute.checkpoints.safetensors_file import SafetensorsFile
from compute.errors import ModelError

NUMBERS = np.array([[1.5, -2.25, 0.0], [3.140625, 1e-3, -6e4]])


def _bfloat16(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The upper halves: rounded towards zero."""
    return (values.astype("<f4").view("<u4") >> 16).astype("<u2")


AS_STORED: dict[str, Callable[[npt.NDArray[Any]], npt.NDArray[Any]]] = {
    "F64": lambda values: values.astype("<f8"),
    "F32": lambda values: values.astype("<f4"),
    "F16": lambda values: values.astype("<f2"),
    "BF16": _bfloat16,
}
AS_READ: dict[str, Callable[[npt.NDArray[Any]], npt.NDArray[Any]]] = {
    "F64": lambda stored: stored,
    "F32": lambda stored: stored,
    "F16": lambda stored: stored.astype(np.float32),
    "BF16": lambda stored: (stored.astype(np.uint32) << 16).view(np.float32),
}


def written(path: Path, dtype: str, values: npt.NDArray[Any]) -> SafetensorsFile:
    """A file of a tensor `t` between two others."""
    layouts = {"before": ("U8", (3,)), "t": (dtype, values.shape), "after": ("I64", (2,))}
    path.write_bytes(of_header(header(layouts), bytes(3) + values.tobytes() + bytes(16)))
    return SafetensorsFile.load(path)


@pytest.mark.parametrize("piece", [1, 4, 1 << 18])
@pytest.mark.parametrize("dtype", sorted(AS_STORED))
def test_numbers_are_read_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, piece: int
) -> None:
    monkeypatch.setattr(safetensors_file, "_PIECE", piece)
    stored = AS_STORED[dtype](NUMBERS)
    read = written(tmp_path / "t.safetensors", dtype, stored).read("t")
    assert np.array_equal(read, AS_READ[dtype](stored))
    assert read.dtype == (np.float64 if dtype == "F64" else np.float32)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1, 1, 1)])
def test_any_shape_is_read(tmp_path: Path, shape: tuple[int, ...]) -> None:
    values = np.ones(shape, "<f4")
    assert written(tmp_path / "t.safetensors", "F32", values).read("t").shape == shape


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", sorted(AS_STORED))
def test_number_that_is_not_finite_is_refused_with_its_tensor(
    tmp_path: Path, dtype: str, bad: float
) -> None:
    values = NUMBERS.copy()
    values[1, 1] = bad
    stored = AS_STORED[dtype](values)
    file = written(tmp_path / "t.safetensors", dtype, stored)
    with pytest.raises(ModelError) as refused:
        file.read("t")
    assert refused.value.faults[0].place == ("t.safetensors", "t")


def test_finite_numbers_of_an_infinite_sum_are_no_fault(tmp_path: Path) -> None:
    values = np.full(8, np.finfo(np.float32).max)
    file = written(tmp_path / "t.safetensors", "F32", values.astype("<f4"))
    assert np.array_equal(file.read("t"), values)


def test_opposite_infinities_are_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "t.safetensors", "F32", np.array([np.inf, -np.inf], "<f4"))
    with pytest.raises(ModelError):
        file.read("t")


def _shorter(path: Path) -> None:
    os.truncate(path, 200)


def _replaced(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.with_name("held").write_bytes(b"")  # so that the inode is not the same one again
    path.write_bytes(content)


def _rewritten(path: Path) -> None:
    before = path.stat().st_mtime_ns
    path.write_bytes(path.read_bytes())
    os.utime(path, ns=(before + 1000, before + 1000))


CHANGES: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "shorter": _shorter,
    "replaced": _replaced,
    "new": _rewritten,
}


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_file_changed_since_it_was_loaded_is_an_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / "t.safetensors"
    file = written(path, "F32", NUMBERS.astype("<f4"))
    CHANGES[name](path)
    with pytest.raises(ModelError, match="not the file any more"):
        file.read("t")
    with pytest.raises(ModelError, match="not the file any more"):
        file.bytes_of("t", 0, 4)


def test_file_that_shrinks_while_it_is_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.safetensors"
    file = written(path, "F32", np.zeros(1 << 12, "<f4"))
    monkeypatch.setattr(safetensors_file, "_PIECE", 1 << 10)
    check = SafetensorsFile._refuse_what_is_not_finite

    def shrink(self: SafetensorsFile, piece: npt.NDArray[Any], name: str) -> None:
        check(self, piece, name)
        os.truncate(path, 1 << 12)

    monkeypatch.setattr(SafetensorsFile, "_refuse_what_is_not_finite", shrink)
    with pytest.raises(ModelError, match="not the file any more"):
        file.read("t")


def test_bytes_are_those_stored(tmp_path: Path) -> None:
    stored = NUMBERS.astype("<f4")
    file = written(tmp_path / "t.safetensors", "F32", stored)
    assert file.bytes_of("t", 4, 12) == stored.tobytes()[4:12]
    assert file.bytes_of("t", 20, 999) == stored.tobytes()[20:]


def test_folder_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        SafetensorsFile.load(tmp_path)
