"""Whether other runs have what changes take from them. Read through interventions."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from compute import selection, stages
from compute.errors import MOST_FAULTS, Fault, InterventionError, refuse_if
from compute.interventions import changing
from compute.interventions.changing import Change
from compute.selection import Scene
from compute.types import AXES


def check_donors(changes: Sequence[Change], scene: Scene, donors: Mapping[int, Scene]) -> None:
    """Raise an InterventionError where a donor's run has not what a change takes from it.

    A donor may be of another length where the indices exist in it; a donor without a batch axis
    serves every row, and one with it serves a run without if it has one row or is averaged.
    """
    found = (
        fault
        for change in changes
        if change.source is not None
        for fault in _donor_faults(change, scene, donors[change.source])
    )
    refuse_if(InterventionError, list(islice(found, MOST_FAULTS)))


def _donor_faults(change: Change, scene: Scene, donor: Scene) -> Iterator[Fault]:
    place = (change.at, "from")
    reason = donor.absence(change.name)
    if reason is not None:
        yield selection.absent_stage(change.stage, f"of the other input, {reason}", place)
        return
    own, theirs = scene.lengths_of(change.name), donor.lengths_of(change.name)
    over = changing.axes_over(change, "b" in theirs) if change.op == "mean" else ()
    if "b" in over and "b" not in theirs:
        yield Fault(code="no_batch", detail="This input has no batch to average.", place=place)
    for letter in stages.axes_of(change.stage, "b" in theirs):
        if letter not in over:
            yield from _axis_faults(change, letter, own.get(letter), theirs[letter])


def _axis_faults(change: Change, letter: str, own: int | None, theirs: int) -> Iterator[Fault]:
    """A donor's axis is as long as the run's own, or has the indices that are taken of it."""
    chosen = change.where.get(letter)
    wanted = own or 1
    if (theirs == wanted) if chosen is None else max(chosen) < theirs:
        return
    word = AXES[letter]
    asks = f"{wanted} are taken" if chosen is None else f"entry {max(chosen)} is taken"
    yield Fault(
        code="donor_mismatch",
        detail=f"Of {change.name} this input gives {theirs} in {word}, where {asks}.",
        place=(change.at, "from"),
        expected=wanted if chosen is None else max(chosen) + 1,
        got=theirs,
    )
