"""Write `gradients.safetensors`: PyTorch's gradients of the plain run of each family's model.

Needs what `make_references` needs; from the top of the repository:
`PYTHONPATH=tests python -m parity.gradients`. The same versions give the same file again.

`folder/direction` (V) or (d) is what the last row of the logits, or of the last hidden state where
there are none, is multiplied with; `folder/value` what is kept of a run by that name: the gradient
of that number, in float64 with upstream's conversions lifted.
"""

from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from torch import nn

from parity import checks, filling, runs
from parity.families import FAMILIES, Family
from parity.lifted import lift
from parity.make_references import built
from parity.runs import Tensors

FILE = Path(__file__).parent / "gradients.safetensors"
PLUS, MINUS = 5, 11  # tokens whose logits are compared


def main() -> None:
    """Make the whole file."""
    torch.set_num_threads(1)
    transformers.logging.disable_progress_bar()
    found: Tensors = {}
    for family in FAMILIES:
        if "plain" in family.runs and family.dtype == "float32" and family.weights is None:
            found |= {f"{family.folder}/{name}": x for name, x in gradients(family).items()}
    save_file(found, FILE)


def gradients(family: Family) -> Tensors:
    """The direction of a family's measure, and its gradient by every value that is kept."""
    model, given = lifted(family)
    values = kept(model, family, given)
    direction = direction_of(values)
    measured = values.get("logits", values[last(values)])
    number = measured[0, -1] @ direction
    names = [name for name in values if name != "logits" and values[name].requires_grad]
    found = torch.autograd.grad(number, [values[name] for name in names], allow_unused=True)
    made = {name: x for name, x in zip(names, found, strict=True) if x is not None}
    print(f"{family.folder:24} {len(made)} of {len(values)}")
    return {"direction": direction} | {name: x.contiguous() for name, x in made.items()}


def lifted(family: Family) -> tuple[nn.Module, Tensors]:
    """The model of the family's folder in float64 throughout, and what it is called with."""
    saved = built(family)
    filling.fill(saved, family.folder, family.sinusoids)
    given = runs.inputs(family, "plain", saved.config)
    with lift():
        model = built(family)
    model.load_state_dict(saved.state_dict())
    if family.sinusoids:
        checks.lift_sinusoids(model.get_parameter(family.sinusoids))
    return model, given


def kept(model: nn.Module, family: Family, given: Tensors) -> Tensors:
    """As `runs.values`, with the graph that leads to them."""
    found: Tensors = {}
    hooks = [
        hook for stack in runs.stacks(model, family) for hook in runs.watched(model, found, *stack)
    ]
    with lift():
        output = model(**given, output_attentions=True, use_cache=False)
    for hook in hooks:
        hook.remove()
    return found | runs.outputs(output, given["input_ids"].shape)


def direction_of(values: Tensors) -> torch.Tensor:
    """1 and -1 at two tokens; of a model without logits cos 0, cos 1, … over the coordinates."""
    if "logits" not in values:
        return torch.arange(values[last(values)].shape[-1], dtype=torch.float64).cos()
    direction = torch.zeros(values["logits"].shape[-1], dtype=torch.float64)
    direction[PLUS], direction[MINUS] = 1.0, -1.0
    return direction


def last(values: Tensors) -> str:
    """The last hidden state of the stack that comes last."""
    names = [name for name in values if name.startswith("hidden.")]
    return max(names, key=lambda name: int(name.rpartition(".")[2]))


if __name__ == "__main__":
    main()
