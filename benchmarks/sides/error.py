"""The error of one block in float32 against the tests' literal transcription in float64.

    python -m benchmarks.sides.error '{"positions": 128}'

Prints JSON: the largest error of a stage ÷ its largest entry, and which stage that is.
"""

import json
import sys

import numpy as np

from benchmarks import settled
from benchmarks.sides import kept, ours
from compute import config_json
from compute.selection import resolve, scene_for
from compute.trace import Run, trace
from compute.types import Array, Inputs

sys.path.insert(0, str(settled.ROOT / "tests"))

from oracle import forward


def main() -> None:
    """Print the worst stage of every primary stage and the heads' contributions."""
    positions = json.loads(sys.argv[1])["positions"]
    model = ours.stack(1, kept.LARGE)
    run = ours.run(model, positions, kept.names(1))
    whole = Run(
        config=model,
        weights=run.weights,
        inputs=run.inputs,
        selection=resolve(None, scene_for(model, run.inputs)),
    )
    found = {each.wanted.name: each.values for each in trace(whole).made}
    right = forward.trace(
        config_json.as_json(model), ours.tensors_of(model), tensor=_tensor(run.inputs)
    )
    errors = {name: _error(right[name], values) for name, values in found.items()}
    worst = max(errors, key=lambda name: errors[name])
    print(json.dumps({"error": errors[worst], "stage": worst, "stages": len(errors)}))


def _tensor(inputs: Inputs) -> Array:
    assert inputs.tensor is not None
    return inputs.tensor


def _error(right: Array, found: Array) -> float:
    seen = np.isfinite(right)
    if right.shape != found.shape or (np.isfinite(found) != seen).any():
        return float("inf")
    return float(np.abs(right[seen] - found[seen]).max() / np.abs(right[seen]).max())


if __name__ == "__main__":
    main()
