"""How the write subspaces of heads lie to each other."""

from collections.abc import Callable, Sequence

import numpy as np

from compute.circuits.angles import principal_angles
from compute.circuits.heads import Float64, HeadId, by_block, outputs_of
from compute.circuits.reading import met, shared
from compute.circuits.subspace import Spans, spans_of
from compute.weights import ModelWeights


def write_spans(
    weights: ModelWeights, heads: Sequence[HeadId], check: Callable[[], None]
) -> Sequence[Spans]:
    """The write subspaces of the heads, one Spans for each block that has some, blocks in order."""
    found = []
    for block, places in by_block(heads).items():
        check()
        chosen = [heads[at].head for at in places]
        found.append(spans_of(outputs_of(weights.blocks[block], chosen)))
    return found


def overlaps(
    heads: Sequence[HeadId], writes: Sequence[Spans], check: Callable[[], None]
) -> Float64:
    """The overlap of each head's write subspace with each other's: (a, a), symmetric."""
    found = np.empty((len(heads), len(heads)))
    blocks = list(zip(by_block(heads).values(), writes, strict=True))
    for at, (rows, span) in enumerate(blocks):
        check()
        for columns, other in blocks[at:]:
            block = shared(met(span, other).squares, span, other)
            found[np.ix_(rows, columns)] = block
            found[np.ix_(columns, rows)] = block.T
    return found


def pairwise_angles(
    heads: Sequence[HeadId], writes: Sequence[Spans], check: Callable[[], None]
) -> Sequence[tuple[int, int, Float64]]:
    """(i, j, principal angles in degrees) for each pair i < j of places in `heads`."""
    bases: dict[int, Float64] = {}
    for places, span in zip(by_block(heads).values(), writes, strict=True):
        bases.update((place, span.basis(at)) for at, place in enumerate(places))
    found = []
    for i in range(len(heads)):
        check()
        found += [(i, j, principal_angles(bases[i], bases[j])) for j in range(i + 1, len(heads))]
    return found
