"""Models from .gguf files: their states are transformers' own, whatever the converter permuted."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from gguf import GGMLQuantizationType, quants
from safetensors.numpy import load_file

from compute import selection, stages, tensors, weights
from compute.checkpoints import folder
from compute.checkpoints.checkpoint import Checkpoint
from compute.checkpoints.gguf import loading
from compute.selection import Scene
from compute.trace import Run, trace
from compute.types import DType, Inputs
from parity_gguf.making import Tensor, gguf, opened, plain

FILES = Path(__file__).parents[3] / "parity_gguf"
NAMES = sorted(path.stem for path in FILES.glob("*.gguf"))
Arrays = Mapping[str, npt.NDArray[Any]]


def _states(checkpoint: Checkpoint, told: Arrays, dtype: DType = "float32") -> Arrays:
    inputs = Inputs(token_ids=told["input_ids"])
    if "decoder_input_ids" in told:
        inputs = Inputs(token_ids=told["decoder_input_ids"], memory=inputs)
    config = checkpoint.config
    scene = Scene(config, True, stages.dimensions(config, inputs.positions, inputs.batch))
    run = Run(
        config=config,
        weights=weights.build(config, checkpoint.source(), dtype),
        inputs=inputs,
        selection=selection.resolve(None, scene),
        patches={},
    )
    return {made.wanted.name: made.values for made in trace(run).made}


def _pairs(checkpoint: Checkpoint, told: Arrays) -> dict[str, str]:
    """Our stage -> upstream's value."""
    blocks = checkpoint.config.n_layers
    last = f"blocks.{blocks - 1}.resid_post"
    found = {f"blocks.{block}.resid_pre": f"hidden.{block}" for block in range(blocks)}
    found["final_norm.out" if checkpoint.config.final_norm else last] = f"hidden.{blocks}"
    others = {"logits": "logits", "encoder.final_norm.out": "memory"}
    return {**found, **{ours: theirs for ours, theirs in others.items() if theirs in told}}


def _apart(values: npt.NDArray[Any], told: npt.NDArray[Any]) -> float:
    return float(np.abs(values - told).max() / np.abs(told).max())


def _tolerance(states: Arrays) -> float:
    """Tens of roundings of 6e-8; a score rounded by eps |S| moves its weight by as much."""
    scores = [x for name, x in states.items() if name.endswith("attn.scores")]
    largest = max(float(np.abs(S[np.isfinite(S)]).max()) for S in scores)
    return max(2e-6, 8 * float(np.finfo(np.float32).eps) * largest)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_states_are_those_that_transformers_computes(name: str, dtype: DType) -> None:
    told = load_file(FILES / f"{name}.safetensors")
    checkpoint = loading.load(FILES / f"{name}.gguf")
    states = _states(checkpoint, told, dtype)
    for ours, theirs in _pairs(checkpoint, told).items():
        assert _apart(states[ours], told[theirs]) < _tolerance(states), ours
    assert ("logits" in states) == ("logits" in told)
    assert not checkpoint.left_out
    assert checkpoint.dtypes == ("F32",)
    assert checkpoint.text is None


def test_tensors_of_a_file_are_bit_for_bit_those_of_the_folder() -> None:
    file, kept = loading.load(FILES / "llama-wide.gguf"), folder.load(FILES / "llama-wide")
    assert file.config == kept.config
    ours, theirs = file.source(), kept.source()
    for tensor in tensors.tensors(file.config).values():
        assert np.array_equal(ours(tensor), theirs(tensor)), tensor.name


def _q8_0(blocks: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Half a step of max / 127, and the step's own rounding to float16."""
    largest = np.abs(blocks).max(axis=-1, keepdims=True)
    return largest / 127 / 2 + largest * 2.0**-11


def _q4_1(blocks: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Half a step of (max - min) / 15, and the rounding of step and minimum to float16."""
    least, most = blocks.min(axis=-1, keepdims=True), blocks.max(axis=-1, keepdims=True)
    return (most - least) / 15 / 2 + (most - least + np.abs(least)) * 2.0**-11


BOUNDS: Mapping[str, Callable[[npt.NDArray[Any]], npt.NDArray[Any]]] = {
    "Q8_0": _q8_0,
    "Q4_1": _q4_1,
}
MEASURED = {"Q8_0": 0.02, "Q4_1": 0.2}
"""How far states of llama-wide may be off, beside their largest; measured 0.013 and 0.15."""


def _quantize(path: Path, kind: str) -> None:
    """llama-wide with its matrices quantized, each weight as near as a block's steps allow."""
    keys, values = opened(FILES / "llama-wide.gguf")
    number = GGMLQuantizationType[kind]
    made: dict[str, Tensor] = {}
    for name, array in values.items():
        made[name] = plain(array)
        if array.ndim == 2:
            raw = quants.quantize(array, number)
            made[name] = (int(number), array.shape[::-1], raw.tobytes())
            off = np.abs(quants.dequantize(raw, number) - array).reshape(-1, 32)
            assert (off <= BOUNDS[kind](array.reshape(-1, 32))).all(), name
    path.write_bytes(gguf(keys, made))


@pytest.mark.parametrize("kind", BOUNDS)
def test_quantized_file_is_as_near_as_its_blocks_allow(tmp_path: Path, kind: str) -> None:
    _quantize(tmp_path / "model.gguf", kind)
    quantized, kept = loading.load(tmp_path / "model.gguf"), folder.load(FILES / "llama-wide")
    assert quantized.dtypes == ("F32", kind)
    told = load_file(FILES / "llama-wide.safetensors")
    states, exact = _states(quantized, told), _states(kept, told)
    for ours in ("final_norm.out", "logits"):
        assert _apart(states[ours], exact[ours]) < MEASURED[kind]
