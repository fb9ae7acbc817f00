"""Numbers to so many significant digits."""

import numpy as np

from compute.types import Array, Bools
from service import admission

_OF_FLOAT32 = 9
"""Digits that tell every float32 from its neighbours: nothing is left to round."""

_EXACT_POWER = 22
"""10^22 is the largest power of ten that is a float64."""

_BLOCK = 1 << 15


def rounded(values: Array, digits: int) -> Array:
    """Each number to the nearest decimal with 1 to 15 significant digits: any shape -> same.

    As `format(x, ".3g")` has it: ties of the exact value go to the even digit, and the decimal is
    read as float64, then as the dtype. What would round to an infinity stays.
    """
    if values.dtype == np.float32 and digits >= _OF_FLOAT32:
        return values
    flat = np.ascontiguousarray(values).reshape(-1)
    found = np.empty_like(flat)
    with np.errstate(all="ignore"):  # infinities and nan are met, and stay
        for start in range(0, flat.size, _BLOCK):
            admission.check()
            block = flat[start : start + _BLOCK]
            nearest = _rounded(block.astype(np.float64), digits).astype(flat.dtype)
            found[start : start + _BLOCK] = np.where(np.isfinite(nearest), nearest, block)
    return found.reshape(values.shape)


def _rounded(exact: Array, digits: int) -> Array:
    """By scaling where that is sure to be right, else by Python's own rounding: (n) -> (n)."""
    power = digits - 1 - np.floor(np.log10(np.abs(exact)))
    scalable = np.abs(power) <= _EXACT_POWER
    power = np.where(scalable, power, 0.0)
    up, down = 10.0 ** np.maximum(power, 0.0), 10.0 ** np.maximum(-power, 0.0)
    scaled = exact * up / down
    nearest = np.rint(scaled)
    found: Array = nearest / up * down
    unclear = ~(scalable & _far_from_ties(scaled, nearest)) & np.isfinite(exact) & (exact != 0.0)
    found[~scalable] = exact[~scalable]
    found[unclear] = [float(f"{x:.{digits}g}") for x in exact[unclear].tolist()]
    return found


def _far_from_ties(scaled: Array, nearest: Array) -> Bools:
    """Whether a number is nearer to its whole number than to a tie, whatever its last bit is."""
    distance = np.abs(np.abs(scaled - nearest) - 0.5)
    return distance > 2.0**-51 * np.abs(scaled)
