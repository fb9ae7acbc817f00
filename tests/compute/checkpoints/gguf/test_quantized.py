"""Every type of tensor that is read: its numbers are gguf's own, and finite."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

from compute.checkpoints.gguf.gguf_file import GgufFile
from compute.checkpoints.gguf.quantized import KINDS, NOT_READ
from compute.errors import ModelError
from parity_gguf.making import gguf

ROWS, COLUMNS = 300, 2048  # more than a piece


def test_every_type_of_gguf_is_read_or_refused_by_name() -> None:
    there = {int(x): (x.name, *GGML_QUANT_SIZES[x]) for x in GGMLQuantizationType}
    read = {number: (kind.name, kind.weights, kind.bytes) for number, kind in KINDS.items()}
    assert {**{n: there[n] for n in NOT_READ}, **read} == there
    assert {n: there[n][0] for n in NOT_READ} == NOT_READ


def _blocks(number: int) -> npt.NDArray[Any]:
    """Rows of bytes: real numbers quantized where gguf can, else random blocks that are finite."""
    rng = np.random.default_rng(number)
    kind = GGMLQuantizationType(number)
    values = rng.standard_normal((ROWS, COLUMNS)).astype(np.float32)
    try:
        quantized = quants.quantize(values, kind)
        return np.ascontiguousarray(quantized).view(np.uint8).reshape(ROWS, -1)
    except NotImplementedError:
        return _finite(rng, kind)


def _finite(rng: np.random.Generator, kind: GGMLQuantizationType) -> npt.NDArray[Any]:
    weights, size = GGML_QUANT_SIZES[kind]
    needed = ROWS * COLUMNS // weights
    drawn = rng.integers(0, 256, (2 * needed, size), dtype=np.uint8)
    with np.errstate(all="ignore"):
        fit = np.isfinite(quants.dequantize(drawn, kind)).all(axis=1)
    return drawn[fit][:needed].reshape(ROWS, -1)


@pytest.mark.parametrize("number", KINDS)
def test_tensor_of_a_type_is_what_gguf_makes_of_it(tmp_path: Path, number: int) -> None:
    kind, raw = GGMLQuantizationType(number), _blocks(number)
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf({}, {"w": (number, (COLUMNS, ROWS), raw.tobytes())}))
    file, _ = GgufFile.load(path)
    plain = {"F32": np.float32, "F16": np.float16}.get(kind.name, np.uint8)
    made = file.read("w")
    assert made.dtype == np.float32
    assert np.array_equal(made, quants.dequantize(raw.view(plain), kind).astype(np.float32))
    assert file.bytes_of("w", 3, 9) == raw.tobytes()[3:9]
    assert file.entries["w"].bytes == raw.size


@pytest.mark.parametrize("number", NOT_READ)
def test_type_that_is_not_read_is_refused_by_its_name(tmp_path: Path, number: int) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf({}, {"w": (number, (256,), bytes(4096))}))
    with pytest.raises(ModelError, match=f"w is of {NOT_READ[number]}, which is not read"):
        GgufFile.load(path)


def test_block_with_an_infinite_scale_is_refused_without_a_warning(tmp_path: Path) -> None:
    block = np.float16(np.inf).tobytes() + bytes(32)
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf({}, {"w": (8, (32, 1), block)}))
    file, _ = GgufFile.load(path)
    with pytest.raises(ModelError, match="w holds what is no finite number"):
        file.read("w")


def test_file_that_changed_since_it_was_loaded_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf({}, {"w": (0, (32, 1), bytes(128))}))
    file, _ = GgufFile.load(path)
    path.write_bytes(gguf({}, {"w": (0, (32, 2), bytes(256))}))
    for ask in (lambda: file.read("w"), lambda: file.bytes_of("w", 0, 4), file.header, file.keys):
        with pytest.raises(ModelError, match="is not the file any more"):
            ask()
    path.unlink()
    with pytest.raises(ModelError):
        file.read("w")
