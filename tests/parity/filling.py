"""Weights that leave nothing out: biases, gains, padding rows and tables all matter."""

import zlib
from collections.abc import Iterator

import torch
from torch import nn

INPUT_AXIS_FIRST = ("Conv1D", "GptOssExperts")
ADDED_TO_1 = ("Gemma", "Nemotron")


def fill(model: nn.Module, name: str, kept: str | None = None) -> None:
    """Overwrite every parameter but the one kept with noise that only `name` decides.

    Matrices 1/√fan_in, embeddings, relative tables and sinks 1, biases 0.3, gains their resting
    value + 0.3.
    """
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    own = None if kept is None else model.get_parameter(kept)
    with torch.no_grad():
        for module, own_name, parameter in own_parameters(model):
            noise = torch.randn(parameter.shape, generator=generator)
            middle, scale = middle_and_scale(module, own_name, parameter)
            if parameter is not own:
                parameter.copy_(middle + scale * noise)


def own_parameters(model: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Parameter]]:
    """Every parameter once, tied ones where they come first, with the module that holds it."""
    seen: set[int] = set()
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield module, name, parameter


def middle_and_scale(module: nn.Module, name: str, parameter: nn.Parameter) -> tuple[float, float]:
    """Mean and deviation of one parameter's noise."""
    kind = type(module).__name__
    if name.endswith("bias"):
        return 0.0, 0.3
    if "Norm" in kind:
        return (0.0 if kind.startswith(ADDED_TO_1) else 1.0), 0.3
    if isinstance(module, nn.Embedding) or name == "sinks":
        return 0.0, 1.0
    axis = -2 if kind in INPUT_AXIS_FIRST else -1
    return 0.0, parameter.shape[axis] ** -0.5
