"""An answer with its tensors taken out: what is left is small, and says where each of them is."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

import numpy as np

from compute.types import Value
from service.forms import tensors
from service.forms.form import Form
from service.forms.rounding import rounded
from service.forms.tensors import Exact, Shown, Tensors

BY_NAME = "/tensors"
"""The member whose tensors are entries by their own names; others are by their JSON Pointers."""


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """The answer with `entry` in the place of data, the tensors by that name, in order, and which
    of them are known to be numbers alone."""

    answer: Mapping[str, object]
    entries: Mapping[str, Shown]
    finite: AbstractSet[str]


def taken(members: Mapping[str, object], form: Form) -> Apart:
    """An answer apart: every tensor, and every array of floating point numbers, is an entry."""
    taking = _Taking(form)
    return Apart(taking.members(members, ""), taking.entries, taking.finite)


@dataclass(frozen=True, slots=True, eq=False)
class _Taking:
    form: Form
    entries: dict[str, Shown] = field(default_factory=dict)
    finite: set[str] = field(default_factory=set)

    def members(self, members: Mapping[str, object], place: str) -> Mapping[str, object]:
        return {
            name: self.left(value, f"{place}/{_escaped(name)}") for name, value in members.items()
        }

    def left(self, value: object, place: str) -> object:
        """A value with its tensors taken out."""
        if isinstance(value, Tensors):
            return {name: self._entry(x, _named(place, name)) for name, x in value.named}
        if isinstance(value, Mapping):
            return self.members(value, place)
        if isinstance(value, list | tuple):
            return [self.left(inner, f"{place}/{at}") for at, inner in enumerate(value)]
        shown = self._shown(value)
        return value if shown is None else self._entry(shown, place)

    def _shown(self, value: object) -> Shown | None:
        """A value as a tensor, rounded as asked; None where it is none."""
        if isinstance(value, Shown):
            return value
        if isinstance(value, Exact):
            return replace(_bare(value.values), exact=True)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim:
            return _bare(value)
        return None

    def _entry(self, shown: Shown, name: str) -> Mapping[str, object]:
        """What is left of a tensor; its data is an entry, a summary stays."""
        if shown.summed:
            return {**shown.told, "summary": self._summary(shown.values)}
        here = shown.rounded(self.form.digits)
        nonfinite = tensors.nonfinite(here.values)
        self.entries[name] = here
        if not nonfinite:
            self.finite.add(name)
        return {**here.told, "entry": name, **nonfinite, **here.after}

    def _summary(self, values: Value) -> Mapping[str, object]:
        told, digits = tensors.summary(values), self.form.digits
        return told if digits is None else {x: rounded(y, digits) for x, y in told.items()}


def _bare(values: Value) -> Shown:
    return Shown({"dtype": values.dtype.name, "shape": values.shape}, values)


def _named(place: str, name: str) -> str:
    return name if place == BY_NAME else f"{place}/{_escaped(name)}"


def _escaped(name: str) -> str:
    """A key as a token of a JSON Pointer. RFC 6901."""
    return name.replace("~", "~0").replace("/", "~1")
