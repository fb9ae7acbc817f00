"""What must hold of a reference before it is kept."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from parity import frequencies
from parity.families import Family
from parity.lifted import NotLifted
from parity.runs import Tensors

FAR = 1e-4  # relative; float32 and float64 are nearer than this in models of these sizes
ROUNDED = 6e-8  # half a unit in the last place of a float32 below 1
NEAR = 4e-15  # relative; a few roundings of float64


class Unsound(Exception):
    """A reference that is not what it says."""


def read(family: Family, folder: Path) -> nn.Module:
    """The model that upstream reads from a folder, in float32 and eager."""
    how = {"attn_implementation": "eager", "experts_implementation": "eager"}
    return family.model.from_pretrained(folder, dtype=torch.float32, **how).eval()


def saved(family: Family, folder: Path, model: nn.Module) -> None:
    """Upstream reads from the folder the weights that were saved."""
    found = read(family, folder).state_dict()
    for name, value in model.state_dict().items():
        if not torch.equal(value.float(), found[name]):
            raise Unsound(f"{family.folder}: {name} is not what was saved")


def watch_dtypes(model: nn.Module) -> None:
    """Have every module of the model refuse to give a tensor of floats that is not float64."""

    def refuse(module: nn.Module, args: object, output: object) -> None:
        for each in output if isinstance(output, tuple) else [output]:
            floats = isinstance(each, torch.Tensor) and each.is_floating_point()
            if floats and each.dtype != torch.float64:
                raise NotLifted(f"{type(module).__name__} gave {each.dtype}")

    for module in model.modules():
        module.register_forward_hook(refuse)


def frequencies_of(model: nn.Module, given: Tensors) -> None:
    """The tables of rotary positions in a lifted model are their formulas' to float64."""
    fallback = torch.arange(given["input_ids"].shape[1])
    positions = int(given.get("position_ids", fallback).max()) + 1
    for module in model.modules():
        for name, table in module.named_buffers(recurse=False):
            if name.endswith("inv_freq") and "original" not in name:
                one_table(module, name.removesuffix("inv_freq").rstrip("_"), table, positions)
            elif name == "embed_positions":
                gptj_table(table)


def one_table(module: nn.Module, layer_type: str, table: torch.Tensor, positions: int) -> None:
    """One `inv_freq` against its formula."""
    rope = module.config.rope_parameters
    rope = rope[layer_type] if layer_type else rope
    direct = frequencies.inverse_frequencies(
        rope, rope["rope_type"], 2 * len(table), module.config.max_position_embeddings, positions
    )
    refuse_far(f"inv_freq of {rope}", table.numpy(), direct)


def gptj_table(table: torch.Tensor) -> None:
    """GPT-J's sines and cosines against their formula; it has no `inv_freq`."""
    count, dim = table.shape
    angles = np.arange(count)[:, None] * frequencies.plain(10000.0, dim)
    refuse_far("GPT-J's table", table.numpy(), np.hstack([np.sin(angles), np.cos(angles)]))


def lift_sinusoids(table: nn.Parameter) -> None:
    """DistilBERT's table, whose sines are rounded to float32, by its formula in float64."""
    direct = frequencies.sinusoids(*table.shape)
    if np.any(np.abs(table.detach().numpy() - direct) > ROUNDED):
        raise Unsound(f"the table of sines is {table}")
    with torch.no_grad():
        table.copy_(torch.from_numpy(direct))


def refuse_far(name: str, found: np.ndarray, direct: np.ndarray) -> None:
    """Raise where two float64 arrays differ by more than roundings."""
    if found.dtype != np.float64 or np.any(np.abs(found - direct) > NEAR * np.abs(direct) + NEAR):
        raise Unsound(f"{name}: {found} for {direct}")


def distances(family: Family, run: str, wide: Tensors, narrow: Tensors, doubled: Tensors) -> None:
    """float32 is near the lifted float64, and the unlifted one nearer; exact without casts."""
    to_narrow, to_doubled = distance(wide, narrow), distance(wide, doubled)
    print(f"{family.folder:22} {run:7} float32 {to_narrow:.1e}  unlifted {to_doubled:.1e}")
    if {value.dtype for value in wide.values()} != {torch.float64}:
        raise Unsound(f"{family.folder}/{run}: not all in float64")
    if not all(value.isfinite().all() for value in (*wide.values(), *narrow.values())):
        raise Unsound(f"{family.folder}/{run}: not finite")
    if not 0 < to_narrow < FAR or not to_doubled < FAR or (to_doubled > 0) != family.casts:
        raise Unsound(f"{family.folder}/{run}: float32 {to_narrow}, unlifted {to_doubled}")


def distance(wide: Tensors, other: Tensors) -> float:
    """The largest difference of two runs, each tensor's relative to its largest value.

    Without NaN: unlifted, the float64 of a masked score is -inf in the float32 of a softmax, and
    the rows of padding that see nothing are NaN.
    """
    if wide.keys() != other.keys():
        raise Unsound(f"{sorted(wide)} for {sorted(other)}")
    return max(
        float((value - other[name].double()).abs().nan_to_num().max() / value.abs().max())
        for name, value in wide.items()
    )
