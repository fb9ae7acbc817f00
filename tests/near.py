"""Plain JSON compared up to how a machine's kernels round float32."""

from numbers import Real

ROUNDING = 5e-7  # a few units in the last place of float32


def near(found: object, told: object) -> bool:
    """Whether two JSON values are the same, numbers up to a few roundings of float32."""
    if isinstance(told, dict) and isinstance(found, dict):
        return found.keys() == told.keys() and all(near(found[key], told[key]) for key in told)
    if isinstance(told, list) and isinstance(found, list):
        return len(found) == len(told) and all(map(near, found, told))
    if isinstance(told, Real) and isinstance(found, Real) and type(told) is not bool:
        return abs(float(found) - float(told)) <= ROUNDING * max(1.0, abs(float(told)))
    return found == told
