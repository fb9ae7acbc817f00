"""Whether the other sides compute the same block: the largest difference from the product's.

    python -m benchmarks.peers.agreement '{"positions": 128}'

Prints JSON: package -> the largest difference of a stage relative to its largest entry.
"""

import json
import sys

import numpy as np
import torch

from benchmarks.peers import eager, lens, plain_transformers, traced_nnsight
from benchmarks.sides import kept, ours
from compute.trace import trace

_SIDES = {
    "PyTorch": eager.stages,
    "TransformerLens": lens.stages,
    "transformers": plain_transformers.stages,
    "nnsight": traced_nnsight.stages,
}

TOLERANCE = 1e-4

Stages = dict[str, np.ndarray]


def main() -> None:
    """Print the differences."""
    positions = json.loads(sys.argv[1])["positions"]
    model = ours.stack(1, kept.LARGE)
    run = ours.run(model, positions, kept.names(1, contributions=True))
    right = {each.wanted.name: each.values for each in trace(run).made}
    print(json.dumps({name: _checked(right, stages(positions)) for name, stages in _SIDES.items()}))


def _checked(right: Stages, found: dict[str, torch.Tensor]) -> float:
    """The largest difference; SystemExit where this is not the same block."""
    each = {name: _difference(right[name], value.detach().numpy()) for name, value in found.items()}
    worst = max(each, key=lambda name: each[name])
    if each[worst] > TOLERANCE:
        raise SystemExit(f"{worst} differs by {each[worst]:.1e}: not the same block")
    return each[worst]


def _difference(right: np.ndarray, found: np.ndarray) -> float:
    """Where the product masks a score, anything below every score may stand."""
    seen = np.isfinite(right)
    if right.shape != found.shape or (found[~seen] > -1e30).any():
        return float("inf")
    largest = np.abs(right[seen]).max()
    return float(np.abs(right[seen] - found[seen]).max() / largest)


if __name__ == "__main__":
    main()
