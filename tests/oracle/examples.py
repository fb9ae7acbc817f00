"""One sequence of an input: its rows, a position for each, who may attend to whom."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from oracle import positions
from oracle.functions import Array, Bools, Config, Ints

AXES = {"tensor": 2, "attention_mask": 2}
"""The axes of a value of one sequence; one where nothing is said."""


@dataclass(frozen=True, slots=True)
class Example:
    """Rows of a posted tensor (n, d), or token ids (n,); a position, a type and whether it may
    be attended for each (n,); the pairs that may attend (n, m)."""

    rows: npt.NDArray[Any]
    position_ids: Ints
    token_types: Ints
    key_mask: Bools
    attention_mask: Bools

    @property
    def length(self) -> int:
        """How many positions are in use: the largest and one more."""
        return int(max(self.position_ids)) + 1


@dataclass(frozen=True, slots=True)
class Memory:
    """What cross-attention reads: rows (s, d), and which of them may be attended (s,)."""

    rows: Array
    key_mask: Bools


def example(given: Mapping[str, npt.ArrayLike | None], element: int) -> Example:
    """An element of an input. What is not given: every key and pair may be attended, positions
    follow the padding, types are 0."""
    own = {name: of_element(value, element, AXES.get(name, 1)) for name, value in given.items()}
    tokens, tensor = own.get("token_ids"), own.get("tensor")
    rows = tensor if tokens is None else tokens
    assert rows is not None
    n = len(rows)
    keys = _or(own.get("key_mask"), np.ones(n, dtype=bool))
    return Example(
        rows=rows,
        position_ids=_or(own.get("position_ids"), positions.default_ids(keys)),
        token_types=_or(own.get("token_types"), np.zeros(n, dtype=np.int64)),
        key_mask=keys,
        attention_mask=_or(own.get("attention_mask"), np.ones((n, n), dtype=bool)),
    )


def _or(value: npt.NDArray[Any] | None, default: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return default if value is None else value


def of_element(value: npt.ArrayLike | None, element: int, axes: int) -> npt.NDArray[Any] | None:
    """An element's own part of a value that may have a batch axis before its `axes`."""
    if value is None:
        return None
    array = np.asarray(value)
    return array if array.ndim == axes else array[element]


def allowed_pairs(attention: Config, one: Example) -> Bools:
    """(i, j) is true where row i may take from row j; (n, m)."""
    n, window = len(one.key_mask), attention["window"]
    allowed = np.zeros((n, n), dtype=bool)
    for i in range(n):
        for j in range(n):
            in_order = attention["mask"] == "full" or j <= i
            is_near = window is None or abs(i - j) < window
            kept = one.key_mask[j] and one.attention_mask[i][j]
            allowed[i, j] = in_order and is_near and kept
    return allowed
