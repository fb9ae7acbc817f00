"""The fields of a config.json, read strictly: each of its type, within bounds, or refused by key.

Faults are gathered: a reader that meets one notes it and goes on with a stand-in that its bounds
allow, and `check` raises all of them. A key that is null counts as left out, as its writers mean
it.
"""

from collections.abc import Mapping, Sequence
from math import inf, nan
from typing import TypeVar

from compute.checkpoints.faults import fault, nearest, shown
from compute.config import ActivationName
from compute.errors import MOST_FAULTS, Fault, ModelError, Place, refuse_if

LARGEST_SIZE = 1 << 20
LARGEST_VOCAB = 1 << 22
SMALLEST, LARGEST = 1e-30, 1e30  # epsilons, bases and factors whose products stay finite

ACTIVATIONS: Mapping[str, ActivationName] = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "quick_gelu": "quick_gelu",
    "relu": "relu",
    "relu2": "relu2",
    "silu": "silu",
    "swish": "silu",
    "linear": "identity",
}
"""An activation as a config.json calls it -> as we do."""

T = TypeVar("T")
D = TypeVar("D", bound=float | None)


class Fields:
    """An object of a config.json, and the faults that were met in it."""

    def __init__(
        self,
        raw: Mapping[str, object],
        place: Place = ("config.json",),
        faults: list[Fault] | None = None,
    ) -> None:
        self.raw = raw
        self._place = place
        self._faults: list[Fault] = [] if faults is None else faults

    def check(self) -> None:
        """Raise a ModelError with every fault that was met here and in nested objects."""
        refuse_if(ModelError, self._faults)

    def has(self, key: str) -> bool:
        """Whether a key is there and not null."""
        return self.raw.get(key) is not None

    def fault(self, key: str, detail: str, expected: object = None, got: object = None) -> None:
        """Note a fault at a key."""
        if len(self._faults) < MOST_FAULTS:
            self._faults.append(fault((*self._place, key), f"{key} {detail}", expected, got))

    def size(self, key: str, most: int = LARGEST_SIZE) -> int:
        """A whole number from 1 to `most`; it must be there."""
        value = self._required(key)
        return 1 if value is None else self._whole(key, value, 1, most)

    def size_or(self, key: str, default: D, most: int = LARGEST_SIZE) -> int | D:
        """A whole number from 1 to `most`, or the default where it is left out."""
        value = self.raw.get(key)
        return default if value is None else self._whole(key, value, 1, most)

    def count_or(self, key: str, default: int, most: int = LARGEST_SIZE) -> int:
        """A whole number from 0 to `most`, or the default where it is left out."""
        value = self.raw.get(key)
        return default if value is None else self._whole(key, value, 0, most)

    def number(self, key: str) -> float:
        """A number above 0, neither tiny nor huge; it must be there."""
        value = self._required(key)
        return 1.0 if value is None else self._positive(key, value)

    def number_or(self, key: str, default: D) -> float | D:
        """A number above 0, neither tiny nor huge, or the default where it is left out."""
        value = self.raw.get(key)
        return default if value is None else self._positive(key, value)

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        value = self.raw.get(key)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        self._misfit(key, "true or false", value)
        return default

    def choice(self, key: str, among: Mapping[str, T], default: str) -> T:
        """What a name stands for; a name that is not `among` is refused with those there are."""
        value = self.raw.get(key)
        name = default if value is None else value
        if isinstance(name, str) and name in among:
            return among[name]
        near = nearest(name, among) if isinstance(name, str) else ""
        there = ", ".join(among)
        detail = f"must be one of {there}; got {shown(name)}.{near}"
        self.fault(key, detail, there, shown(name))
        return among[default] if default in among else next(iter(among.values()))

    def names(self, key: str, among: Sequence[str]) -> tuple[str, ...] | None:
        """A list of names, each one of `among`; None where it is left out."""
        value = self.raw.get(key)
        if value is None:
            return None
        if isinstance(value, list) and all(name in among for name in value):
            return tuple(value)
        self._misfit(key, f"a list of names, each one of {', '.join(among)}", value)
        return None

    def must_be(self, key: str, expected: object, default: object) -> None:
        """Refuse an option that is not computed; `default` is what left out means."""
        value = self.raw.get(key)
        got = default if value is None else value
        if type(got) is not type(expected) or got != expected:
            told = "null" if expected is None else shown(expected).lower()
            detail = f"= {shown(got)} is not computed; only {told} is."
            self.fault(key, detail, expected, shown(got))

    def activation(self, key: str, default: str) -> ActivationName:
        """An activation by the name it has in a config.json."""
        return self.choice(key, ACTIVATIONS, default)

    def nested(self, key: str) -> "Fields":
        """The object at a key; an empty one where it is left out."""
        value = self.raw.get(key)
        if value is not None and not isinstance(value, dict):
            self._misfit(key, "an object", value)
        raw = value if isinstance(value, dict) else {}
        return Fields(raw, (*self._place, key), self._faults)

    @property
    def headless(self) -> bool:
        """Whether the stack was stored as itself, without what reads it out (`LlamaModel`)."""
        value = self.raw.get("architectures")
        names = value if isinstance(value, list) else []
        return bool(names) and all(isinstance(x, str) and x.endswith("Model") for x in names)

    def _required(self, key: str) -> object:
        value = self.raw.get(key)
        if value is None:
            self.fault(key, f"is missing from {'.'.join(map(str, self._place))}.")
        return value

    def _whole(self, key: str, value: object, least: int, most: int) -> int:
        if type(value) is int and least <= value <= most:
            return value
        self._misfit(key, f"a whole number from {least} to {most}", value)
        return 1

    def _positive(self, key: str, value: object) -> float:
        number = _as_float(value)
        if SMALLEST <= number <= LARGEST:
            return number
        self._misfit(key, f"a number from {SMALLEST} to {LARGEST}", value)
        return 1.0

    def _misfit(self, key: str, expected: str, got: object) -> None:
        self.fault(key, f"must be {expected}; got {shown(got)}.", expected, shown(got))


def _as_float(value: object) -> float:
    """A JSON number, or NaN for anything else."""
    try:
        return float(value) if type(value) in (int, float) else nan  # type: ignore[arg-type]
    except OverflowError:
        return inf
