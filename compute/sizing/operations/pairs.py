"""How many (query, key) pairs attention counts, in closed form: S, what scores and mix grow with.

n queries stand behind `past` keys that are there already; query i of them, from 1, sees the keys
up to its own position, past + i of them. A window w leaves it the last w of those.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from compute.config import MaskKind
from compute.sizing.quantity import Quantity, q
from compute.sizing.vocabulary import Causal

Counted = Callable[[MaskKind, int | None, Causal], Quantity]
"""(mask, window, convention) -> pairs of one head of one block."""


def visible(
    n: Quantity, past: Quantity, mask: MaskKind, window: int | None, causal: Causal
) -> Quantity:
    """Pairs of n queries behind `past` keys. S = Σ_i keys that query i counts.

    exact: the visible ones, windows and all. full: n·(past + n), half: half of that; both take no
    notice of windows. A mask that hides nothing (mask = full) is halved by no convention.
    """
    if causal == "exact":
        return _VISIBLE[mask](n, past, window)
    every = n * (past + n) if past.value else n**2
    return every / 2 if causal == "half" and mask == "causal" else every


def over_steps(
    steps: Quantity, past: Quantity, mask: MaskKind, window: int | None, causal: Causal
) -> Quantity:
    """Pairs of so many steps of one query each, the first behind `past` keys: Σ_j S(1, past + j).

    No later key is there yet, so that no mask hides one. full counts past + j + 1 keys in step j,
    half of them where the convention is half.
    """
    if causal == "exact":
        return _up_to_own(steps, past, window)
    every = _up_to_own(steps, past, None)
    return every / 2 if causal == "half" and mask == "causal" else every


def _up_to_own(n: Quantity, past: Quantity, window: int | None) -> Quantity:
    """Σ_i min(past + i, w) = n·past + n(n+1)/2, less the triangle of what each query leaves out."""
    every = n * past + _triangle(n) if past.value else _triangle(n)
    if window is None or window >= n.value + past.value:
        return every
    w = q(f"w_{window}", window)
    hidden = _triangle(past + n - w) if past.value else _triangle(n - w)
    left = every - hidden
    return left + _triangle(past - w) if past.value > window else left


def _both_sides(n: Quantity, past: Quantity, window: int | None) -> Quantity:
    """|i - j| < w: up to its own position min(past + i, w), and of the later keys at most w - 1."""
    if window is None or window >= n.value + past.value:
        return n * (past + n) if past.value else n**2
    return _up_to_own(n, past, window) + _up_to_own(n, n * 0, window) - n


def _triangle(x: Quantity) -> Quantity:
    """1 + 2 + … + x."""
    return x * (x + 1) / 2


_VISIBLE: Mapping[MaskKind, Callable[[Quantity, Quantity, int | None], Quantity]] = (
    MappingProxyType({"causal": _up_to_own, "full": _both_sides})
)
