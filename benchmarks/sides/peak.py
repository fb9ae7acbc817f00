"""The peak memory of one 12-block trace, n = 512, beyond what the process held before it.

    python -m benchmarks.sides.peak '{"last": false}'

A run of 16 positions comes first, so that libraries and the products' buffers are there; weights
are packed before, and what that freed is given back. Prints JSON: peak and bytes of the outputs.
"""

import json
import sys

from benchmarks import resident
from benchmarks.sides import kept, ours
from compute.trace import trace

_LAYERS, _POSITIONS, _WARM = 12, 512, 16


def main() -> None:
    """Print what one trace takes."""
    is_last = json.loads(sys.argv[1])["last"]
    names = [f"blocks.{_LAYERS - 1}.resid_post"] if is_last else kept.names(_LAYERS)
    model = ours.stack(_LAYERS, kept.LARGE)
    run = ours.run(model, _POSITIONS, names)
    trace(ours.run(ours.stack(1, kept.LARGE), _WARM, kept.names(1)))
    resident.give_back()
    resident.forget_peak()
    before = resident.now()
    made = trace(run).made
    outputs = sum(each.values.nbytes for each in made)
    print(json.dumps({"peak": resident.peak() - before, "outputs": outputs}))


if __name__ == "__main__":
    main()
