"""Everything compute refuses, as one tree.

    ComputeError
    ├── ConfigError      a config that breaks a rule
    ├── WeightsError     tensors that do not fit the config (all of them at once)
    ├── InputError       an input that does not fit the model
    ├── SelectionError   a stage, slice or alias that cannot be answered
    ├── InterventionError an intervention that cannot be made
    ├── QuestionError    what is asked of a run or of weights cannot be answered
    └── ModelError       a model folder that cannot be read

Each carries its faults; none knows of HTTP.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from compute.types import Bools

Place = tuple[str | int, ...]
"""Where a fault is, as keys and indices from the root of the thing that was checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One broken rule: where, which rule, what was expected and what came."""

    code: str
    detail: str
    place: Place = ()
    expected: object = None
    got: object = None


class ComputeError(Exception):
    """The root of the tree: at least one fault, all that were found."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(fault.detail for fault in faults))
        self.faults = tuple(faults)


class ConfigError(ComputeError):
    """A config breaks a rule; places are relative to the config."""


class WeightsError(ComputeError):
    """Tensors do not fit the config; places are relative to the weights."""


class InputError(ComputeError):
    """The input does not fit the model; places are relative to the input."""


class SelectionError(ComputeError):
    """A selection names what cannot be answered; places are relative to `select`."""


class InterventionError(ComputeError):
    """Interventions that cannot be made; places are relative to `interventions`."""


class QuestionError(ComputeError):
    """What is asked of a run or of weights cannot be answered; places are relative to the whole
    request."""


class ModelError(ComputeError):
    """A model folder is not what it should be; places are file names."""


MOST_FAULTS = 100
"""Faults beyond so many are not looked for: nobody reads them, and each costs memory."""

_PIECE = 1 << 16


def first_entries(wrong: Bools) -> Iterator[tuple[int, ...]]:
    """The indices of the first `MOST_FAULTS` true entries, looked for piece by piece."""
    return islice(_true_entries(wrong), MOST_FAULTS)


def _true_entries(wrong: Bools) -> Iterator[tuple[int, ...]]:
    flat = wrong.reshape(-1)
    for start in range(0, flat.size, _PIECE):
        for at in np.flatnonzero(flat[start : start + _PIECE]).tolist():
            yield tuple(int(i) for i in np.unravel_index(start + at, wrong.shape))


def out_of_range(
    owner: str, word: str, indices: Sequence[int], length: int, place: Place
) -> Iterator[Fault]:
    """A fault for each index that an axis of a length does not have, at most `MOST_FAULTS`."""
    wrong = (at for at, index in enumerate(indices) if not -length <= index < length)
    for at in islice(wrong, MOST_FAULTS):
        yield from outside(owner, word, indices[at], length, (*place, at))


def outside(owner: str, word: str, index: int, length: int, place: Place) -> Iterator[Fault]:
    """A fault where an axis of a length does not have an index."""
    if not -length <= index < length:
        yield Fault(
            code="index_out_of_range",
            detail=f"{word} has {length} entries in {owner}: 0 to {length - 1}, or from the end.",
            place=place,
            expected=f"from {-length} to {length - 1}",
            got=index,
        )


def refuse_if(error: type[ComputeError], faults: Sequence[Fault]) -> None:
    """Raise `error` with all faults, if there are any."""
    if faults:
        raise error(faults)
