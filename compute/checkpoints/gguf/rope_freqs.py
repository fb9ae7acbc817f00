"""Llama 3's scaling of RoPE, which a GGUF file holds as what each frequency is divided by."""

from collections.abc import Iterator

import numpy as np

from compute import frequencies
from compute.checkpoints.faults import refused
from compute.checkpoints.gguf.gguf_file import GgufFile
from compute.config import PositionConfig, RopeScaling
from compute.types import Array

TENSOR = "rope_freqs.weight"
_NOWHERE = np.zeros(1, np.int64)


def scaling_of(file: GgufFile, position: PositionConfig) -> RopeScaling:
    """The scaling whose divisors these are: factor = the largest, low 1, high 4, trained on 8192
    positions or another power of two; refused where none gives them within 1e-6."""
    pairs = (position.rotary_dim // 2,)
    if file.entries[TENSOR].shape != pairs:
        raise refused((file.path.name, TENSOR), f"{TENSOR} has the wrong shape.", pairs)
    divisors = file.read(TENSOR).astype(np.float64)
    if not (divisors > 0.0).all():
        raise refused((file.path.name, TENSOR), f"{TENSOR} holds what divides nothing.")
    if (divisors == 1.0).all():
        return RopeScaling()
    for scaling in _scalings(float(divisors.max())):
        if np.abs(_divisors(position, scaling) / divisors - 1.0).max() < 1e-6:
            return scaling
    detail = f"{TENSOR} holds a scaling that is not Llama 3's, the only one that is computed."
    raise refused((file.path.name, TENSOR), detail)


def _scalings(factor: float) -> Iterator[RopeScaling]:
    for trained in (8192, *(1 << power for power in range(4, 21))):
        yield RopeScaling(
            kind="llama3",
            factor=factor,
            original_positions=trained,
            low_freq_factor=1.0,
            high_freq_factor=4.0,
        )


def _divisors(position: PositionConfig, scaling: RopeScaling) -> Array:
    plain = frequencies.plain(position, scaling, _NOWHERE)
    return plain / frequencies.llama3(position, scaling, _NOWHERE)
