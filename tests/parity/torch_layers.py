"""References of torch's own decoder layer: cross-attention, norms after or before each part."""

import json
import shutil
import zlib
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from parity import checks, filling
from parity.lifted import lift
from parity.runs import Tensors

SIZES = {"d_model": 8, "nhead": 2, "dim_feedforward": 12, "layer_norm_eps": 1e-3, "dropout": 0.0}
FOLDERS: dict[str, dict[str, Any]] = {
    "option-torch-decoder-post-norm": {**SIZES, "activation": "relu", "norm_first": False},
    "option-torch-decoder-pre-norm": {**SIZES, "activation": "gelu", "norm_first": True},
}
TARGETS, SOURCES = 5, 6


def make(here: Path, asked: list[str]) -> None:
    """Both folders."""
    torch.backends.mha.set_fastpath_enabled(False)
    for folder, sizes in FOLDERS.items():
        if not asked or folder in asked:
            make_folder(here / folder, sizes)


def make_folder(folder: Path, sizes: dict[str, Any]) -> None:
    """One layer: its arguments, its weights, its values without and with masks."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    config = {"model_type": "torch.nn.TransformerDecoderLayer", **sizes}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")
    layer = nn.TransformerDecoderLayer(**sizes, batch_first=True).eval()
    filling.fill(layer, folder.name)
    save_file(layer.state_dict(), folder / "model.safetensors")
    found: Tensors = {}
    for run in ("plain", "masked"):
        found |= {f"{run}/{name}": value for name, value in one_run(layer, sizes, run).items()}
    save_file(found, folder / "values.safetensors")


def one_run(layer: nn.Module, sizes: dict[str, Any], run: str) -> Tensors:
    """The inputs of a run and its values in both dtypes."""
    given = inputs(run)
    with lift():
        wide_layer = nn.TransformerDecoderLayer(**sizes, batch_first=True).eval()
    wide_layer.load_state_dict(layer.state_dict())
    checks.watch_dtypes(wide_layer)
    widened = {k: v.double() if v.is_floating_point() else v for k, v in given.items()}
    with lift():
        wide = values(wide_layer, widened)
    narrow = values(layer, given)
    if not 0 < checks.distance(wide, narrow) < checks.FAR:
        raise checks.Unsound(
            f"{run}: float32 and float64 differ by {checks.distance(wide, narrow)}"
        )
    found = {f"float64/{name}": value for name, value in wide.items()}
    return given | found | {f"float32/{name}": value for name, value in narrow.items()}


def inputs(run: str) -> Tensors:
    """Targets and memory, and in the run "masked" the causal mask and the padding of the memory.

    A mask is True where nothing may be seen, as torch has it.
    """
    generator = torch.Generator().manual_seed(zlib.crc32(run.encode()))
    given = {
        "tgt": torch.randn(2, TARGETS, SIZES["d_model"], generator=generator),
        "memory": torch.randn(2, SOURCES, SIZES["d_model"], generator=generator),
    }
    if run == "masked":
        given["tgt_mask"] = torch.ones(TARGETS, TARGETS).triu(1).bool()
        given["memory_key_padding_mask"] = torch.arange(SOURCES) >= torch.tensor([[6], [4]])
    return given


def values(layer: nn.Module, given: Tensors) -> Tensors:
    """What leaves the layer, and the weights of both attentions by head."""
    found: Tensors = {}
    for name, attention in [("attn.0", layer.self_attn), ("cross.0", layer.multihead_attn)]:
        keep_weights(attention, name, found)
    with torch.no_grad():
        found["hidden.1"] = layer(**given)
    return {name: value.clone().contiguous() for name, value in found.items()}


def keep_weights(attention: nn.Module, name: str, found: Tensors) -> None:
    """Have an attention give its weights by head, and keep them."""
    forward = type(attention).forward

    def weighed(*args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor]:  # noqa: ANN401
        asked = {**kwargs, "need_weights": True, "average_attn_weights": False}
        output, found[name] = forward(attention, *args, **asked)
        return output, found[name]

    attention.forward = weighed  # type: ignore[method-assign]
