"""Write the folders of references beside this file: tiny models, and what transformers computes.

Needs torch 2.13.0, transformers 5.24.0, safetensors and NumPy; from the top of the repository:
`PYTHONPATH=tests python -m parity.make_references`, with the folders to make where not all are.
The same versions give the same files again. README.md tells what each folder holds.
"""

import shutil
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from torch import nn
from transformers.models.bloom import modeling_bloom

from parity import checks, classic, filling, runs, torch_layers
from parity.families import FAMILIES, Family
from parity.lifted import lift
from parity.runs import Tensors

HERE = Path(__file__).parent


def main(asked: list[str]) -> None:
    """Make the folders asked for, or all."""
    torch.set_num_threads(1)
    transformers.logging.disable_progress_bar()
    for family in FAMILIES:
        if not asked or family.folder in asked:
            make(family)
    classic.make(HERE, asked)
    torch_layers.make(HERE, asked)


def make(family: Family) -> None:
    """One folder: its configuration, its weights, its values."""
    folder = HERE / family.folder
    shutil.rmtree(folder, ignore_errors=True)
    model = built(family)
    filling.fill(model, family.weights or family.folder, family.sinusoids)
    model = model.to(getattr(torch, family.dtype))
    model.save_pretrained(folder, **family.saved)
    (folder / "generation_config.json").unlink(missing_ok=True)
    checks.saved(family, folder, model)
    if family.runs:
        save_file(all_values(family, folder, model), folder / "values.safetensors")


def built(family: Family) -> nn.Module:
    """A model of the family with upstream's first weights, in the default dtype, eager."""
    config = family.config(**family.sizes)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    model = family.model(config).eval()
    if family.untied:
        model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().clone())
    return model


def all_values(family: Family, folder: Path, saved: nn.Module) -> Tensors:
    """The inputs of every run and its values: of the plain run all, and the last in float32 too."""
    found: Tensors = {}
    for run in family.runs:
        given = runs.inputs(family, run, saved.config)
        wide, narrow = lifted(family, saved, given), plain(family, folder, given)
        checks.distances(family, run, wide, narrow, doubled(family, saved, given))
        kept = {"float64": wide if run == "plain" else runs.shortened(wide)}
        if run == "plain":
            kept["float32"] = runs.narrowed(narrow)
        found |= {f"{run}/{name}": value for name, value in given.items()}
        for dtype, values in kept.items():
            found |= {f"{run}/{dtype}/{name}": value for name, value in values.items()}
    if saved.config.model_type == "bloom":
        found["slopes"] = slopes(saved.config.n_head)
    return found


def lifted(family: Family, saved: nn.Module, given: Tensors) -> Tensors:
    """float64 throughout: made and run inside `lift()`, with the weights that were saved."""
    with lift():
        model = built(family)
    model.load_state_dict(saved.state_dict())
    if family.sinusoids:
        checks.lift_sinusoids(model.get_parameter(family.sinusoids))
    checks.watch_dtypes(model)
    with lift():
        found = runs.values(model, family, given)
    checks.frequencies_of(model, given)
    return found


def plain(family: Family, folder: Path, given: Tensors) -> Tensors:
    """float32 as upstream is, from what it reads in the folder."""
    return runs.values(checks.read(family, folder), family, given)


def doubled(family: Family, saved: nn.Module, given: Tensors) -> Tensors:
    """float64 as upstream is: with its conversions to float32."""
    model = built(family)
    model.load_state_dict(saved.state_dict())
    return runs.values(model.double(), family, given)


def slopes(heads: int) -> torch.Tensor:
    """(h,): what BLOOM multiplies the positions with, in float64."""
    with lift():
        return modeling_bloom._get_alibi_slopes(heads, torch.device("cpu"))


if __name__ == "__main__":
    main(sys.argv[1:])
