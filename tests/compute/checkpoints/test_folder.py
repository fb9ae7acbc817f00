"""Model folders: read whole, or refused with what is wrong."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from compute import tensors
from compute.checkpoints import folder
from compute.errors import ModelError

SHIPPED = Path(__file__).parents[3] / "models"


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHIPPED / "eiffel-toy", tmp_path / "toy"))


def _config(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def rewrite(path: Path) -> None:
        config = json.loads((path / "config.json").read_text())
        change(config)
        (path / "config.json").write_text(json.dumps(config))

    return rewrite


def _tensors(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def rewrite(path: Path) -> None:
        tensors = load_file(path / "model.safetensors")
        change(tensors)
        save_file(tensors, path / "model.safetensors")

    return rewrite


BREAKS: dict[str, Callable[[Path], object]] = {
    "no tokenizer": lambda path: (path / "tokenizer.json").unlink(),
    "no card": lambda path: (path / "README.md").unlink(),
    "config no JSON": lambda path: (path / "config.json").write_text("{"),
    "config a list": lambda path: (path / "config.json").write_text("[]"),
    "config with NaN": lambda path: (path / "config.json").write_text('{"d_model": NaN}'),
    "another family": _config(lambda config: config.update(model_type="gpt2")),
    "key missing": _config(lambda config: config.pop("tied")),
    "key unknown": _config(lambda config: config.update(experts=8)),
    "wrong type": _config(lambda config: config.update(d_model="2")),
    "boolean size": _config(lambda config: config.update(vocab=True)),
    "negative size": _config(lambda config: config.update(d_model=-2)),
    "part no object": _config(lambda config: config.update(norm="none")),
    "unknown choice": _config(lambda config: config["ffn"].update(kind="moe")),
    "no weights": lambda path: (path / "model.safetensors").write_bytes(b""),
    "weights cut": lambda path: (path / "model.safetensors").write_bytes(
        (path / "model.safetensors").read_bytes()[:-3]
    ),
    "tensor missing": _tensors(lambda tensors: tensors.pop("embed.W_E")),
    "tensor unknown": _tensors(lambda tensors: tensors.update(more=np.zeros(1, np.float32))),
    "wrong shape": _tensors(
        lambda tensors: tensors.update({"embed.W_E": np.zeros((2, 3), np.float32)})
    ),
    "tensor with NaN": _tensors(
        lambda tensors: tensors.update({"embed.W_E": np.full((3, 2), np.nan, np.float32)})
    ),
    "tokenizer no tokenizer": lambda path: (path / "tokenizer.json").write_text("{}"),
}


@pytest.mark.parametrize("name", sorted(BREAKS))
def test_broken_folder_is_refused_with_what_is_wrong(toy: Path, name: str) -> None:
    BREAKS[name](toy)
    with pytest.raises(ModelError) as refused:
        folder.load(toy)
    assert all(fault.detail and fault.place for fault in refused.value.faults)


@pytest.mark.parametrize("name", ["eiffel-toy", "letter-sort"])
def test_shipped_folder_loads_whole(name: str) -> None:
    checkpoint = folder.load(SHIPPED / name)
    stored = load_file(SHIPPED / name / "model.safetensors")
    source = checkpoint.source()
    listed = tensors.tensors(checkpoint.config)
    assert set(listed) == set(stored)
    for tensor in listed.values():
        assert np.array_equal(source(tensor), stored[tensor.name])
    assert f"\n# {name}\n" in checkpoint.card


def test_content_names_every_file_that_decides_the_numbers(toy: Path) -> None:
    before = folder.load(toy).content
    with (toy / "README.md").open("a") as card:
        card.write("more")
    assert folder.load(toy).content == before
    _tensors(lambda tensors: tensors["embed.W_E"].__imul__(2))(toy)
    assert folder.load(toy).content != before
