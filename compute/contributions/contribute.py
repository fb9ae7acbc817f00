"""The answer to a question about contributions: run, split, measure, a few rows at a time."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from compute.contributions import lens, slab
from compute.contributions.answer import At, LensRow, Shown
from compute.contributions.lens import Read
from compute.contributions.question import Asked
from compute.contributions.seen import Seen, look
from compute.contributions.slab import Slab
from compute.types import Inputs
from compute.weights import ModelWeights


def contributions(
    asked: Asked, weights: ModelWeights, inputs: Inputs, check: Callable[[], None]
) -> Iterator[At]:
    """The answer at each row, rows of the batch one after the other."""
    seen = look(asked.scene.config, weights, inputs, asked.rows, asked.needed, check)
    for some in seen.slabs(asked.slab):
        yield from at_rows(asked, some)


def at_rows(asked: Asked, seen: Seen) -> list[At]:
    """The answer at each of a few rows of a run, all of one row of the batch."""
    # Finite runs may overflow: a number is then not finite, and a sum says so.
    with np.errstate(over="ignore", invalid="ignore"):
        reads = {name: lens.read(name, asked.question.direction, seen) for name in asked.lens}
        split = slab.split(asked, seen, reads) if asked.has_parts else None
        return [_at(row, seen, split, reads) for row in range(len(seen.rows.positions))]


def _at(row: int, seen: Seen, split: Slab | None, reads: Mapping[str, Read]) -> At:
    return At(
        position=int(seen.rows.positions[row]),
        batch=None if seen.rows.batch is None else int(seen.rows.batch[row]),
        state=None if split is None else split.state(row),
        parts=() if split is None else split.parts(row),
        sum=None if split is None else split.sum(row),
        logit=None if split is None else split.logit(row),
        lens=_lens_rows(row, reads) if reads else None,
    )


def _lens_rows(row: int, reads: Mapping[str, Read]) -> tuple[LensRow, ...]:
    made: list[LensRow] = []
    for name, read in reads.items():
        value = None if read.value is None else float(read.value[row])
        before = made[-1].value if made else None
        change = None if value is None or before is None else value - before
        made.append(LensRow(state=name, value=value, change=change, top=_top(row, read)))
    return tuple(made)


def _top(row: int, read: Read) -> tuple[Shown, ...]:
    if read.top is None or read.logits is None or read.probabilities is None:
        return ()
    rows = zip(read.top[row], read.logits[row], read.probabilities[row], strict=True)
    return tuple(Shown(int(t), float(logit), float(p)) for t, logit, p in rows)
