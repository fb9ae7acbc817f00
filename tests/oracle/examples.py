"""One sequence of an input: its rows, a position for each, who may attend to whom."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from oracle import positions
from oracle.functions import Bools, Config, Ints


@dataclass(frozen=True, slots=True)
class Example:
    """Rows of a posted tensor (n, d), or token ids (n,), with positions (n,) and pairs (n, m)."""

    rows: npt.NDArray[Any]
    position_ids: Ints
    allowed: Bools


def example(
    attention: Config,
    rows: npt.NDArray[Any],
    position_ids: Ints | None,
    key_mask: Bools | None,
    attention_mask: Bools | None,
) -> Example:
    """What is not given: every key may be attended, every pair too, positions follow padding."""
    n = len(rows)
    keys = np.ones(n, dtype=bool) if key_mask is None else key_mask
    pairs = np.ones((n, n), dtype=bool) if attention_mask is None else attention_mask
    return Example(
        rows=rows,
        position_ids=positions.default_ids(keys) if position_ids is None else position_ids,
        allowed=allowed_pairs(attention, keys, pairs),
    )


def of_element(value: npt.ArrayLike | None, element: int, axes: int) -> npt.NDArray[Any] | None:
    """An element's own part of a value that may have a batch axis before its `axes`."""
    if value is None:
        return None
    array = np.asarray(value)
    return array if array.ndim == axes else array[element]


def allowed_pairs(attention: Config, key_mask: Bools, attention_mask: Bools) -> Bools:
    """(i, j) is true where row i may take from row j; (m,), (n, m) -> (n, m)."""
    n = len(key_mask)
    allowed = np.zeros((n, n), dtype=bool)
    if attention["kind"] == "none":
        return allowed
    window = attention["window"]
    for i in range(n):
        for j in range(n):
            in_order = attention["mask"] == "full" or j <= i
            is_near = window is None or abs(i - j) < window
            allowed[i, j] = in_order and is_near and key_mask[j] and attention_mask[i][j]
    return allowed
