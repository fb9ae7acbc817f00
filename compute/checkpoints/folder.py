"""A model folder in Glassblock's own form: the resolved config, and tensors by our names."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from compute import config_json, tensors, weights
from compute.checkpoints.text import Text
from compute.config import ModelConfig
from compute.errors import ComputeError, Fault, ModelError, refuse_if
from compute.initial import Source
from compute.types import Array, DType
from compute.weights import ModelWeights

MODEL_TYPE = "glassblock"
_FILES = ("config.json", "model.safetensors", "tokenizer.json", "README.md")


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A loaded model: its name, config, tensors, tokenizer, card, and a hash of its content."""

    name: str
    config: ModelConfig
    values: Mapping[str, Array]
    text: Text
    card: str
    content: str

    def source(self) -> Source:
        """Gives the stored values of a tensor."""
        return lambda tensor: self.values[tensor.name]


def load(folder: Path) -> Checkpoint:
    """The model of a folder, checked whole; a ModelError says what is missing or does not fit."""
    missing = [name for name in _FILES if not (folder / name).is_file()]
    refuse_if(ModelError, [_fault(name, f"{folder.name} has no {name}.") for name in missing])
    config = _config(folder / "config.json")
    values = _values(folder / "model.safetensors", config)
    return Checkpoint(
        name=folder.name,
        config=config,
        values=values,
        text=Text.load(folder / "tokenizer.json"),
        card=(folder / "README.md").read_text("utf-8", errors="replace"),
        content=_content(folder),
    )


@lru_cache(maxsize=32)
def packed(checkpoint: Checkpoint, dtype: DType) -> ModelWeights:
    """A checkpoint's weights as the equations want them, made once a dtype."""
    return weights.build(checkpoint.config, checkpoint.source(), dtype)


def _config(path: Path) -> ModelConfig:
    raw = _object(path)
    if raw.pop("model_type", None) != MODEL_TYPE:
        raise ModelError([_fault(path.name, f"{path.name}: model_type must be {MODEL_TYPE}.")])
    try:
        return config_json.from_json(raw)
    except ComputeError as error:
        raise ModelError(error.faults) from error


def _object(path: Path) -> dict[str, Any]:
    try:
        raw = json.loads(path.read_text("utf-8"), parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise ModelError([_fault(path.name, f"{path.name} is not JSON.")]) from error
    if not isinstance(raw, dict):
        raise ModelError([_fault(path.name, f"{path.name} is not an object.")])
    return raw


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _values(path: Path, config: ModelConfig) -> dict[str, Array]:
    try:
        values: dict[str, Array] = load_file(path)
    except Exception as error:  # the library raises many kinds, by what is wrong
        detail = f"{path.name} is no safetensors file that can be read."
        raise ModelError([_fault(path.name, detail)]) from error
    if config.n_layers > len(values):
        detail = f"{path.name} has fewer tensors than the config has blocks."
        raise ModelError([_fault(path.name, detail, config.n_layers, len(values))])
    listed = tensors.tensors(config)
    faults = [
        _fault(name, f"{name} is {'missing' if name in listed else 'not of this config'}.")
        for name in sorted(set(values) ^ set(listed))
    ]
    faults += [
        _fault(name, f"{name} has the wrong shape.", list(listed[name].shape), list(array.shape))
        for name, array in values.items()
        if name in listed and array.shape != listed[name].shape
    ]
    faults += [
        _fault(name, f"{name} holds what is no finite number.")
        for name, array in values.items()
        if not np.isfinite(array).all()
    ]
    refuse_if(ModelError, faults)
    return values


def _content(folder: Path) -> str:
    """sha256 over the files that decide the numbers."""
    digest = sha256()
    for name in _FILES[:3]:
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()


def _fault(place: str, detail: str, expected: object = None, got: object = None) -> Fault:
    return Fault(code="model_folder", detail=detail, place=(place,), expected=expected, got=got)
