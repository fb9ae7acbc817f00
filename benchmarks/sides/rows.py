"""Seeded rows: the input of every side."""

import numpy as np
import numpy.typing as npt


def rows(count: int, width: int) -> npt.NDArray[np.float32]:
    """(count, width) of a normal distribution."""
    return np.random.default_rng(0).standard_normal((count, width), np.float32)
