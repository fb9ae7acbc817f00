"""RoPE's frequencies, as they are and stretched beyond the positions a model was trained on.

All in float64. r is rotary_dim, i counts the pairs from 0 to r/2 - 1.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, floor, log, pi

import numpy as np

from compute.config import PositionConfig, RopeScaling
from compute.types import Array, Ints


@dataclass(frozen=True, slots=True)
class Turns:
    """radians a position for each pair, (r/2) or (b, r/2); factor multiplies cosines and sines."""

    radians: Array
    factor: float


def frequencies(position: PositionConfig, position_ids: Ints) -> Turns:
    """theta^(-2i/r) for each pair, scaled by the position's rule."""
    scaling = position.scaling
    factor = scaling.attention_factor if scaling.kind == "yarn" else 1.0
    return Turns(_RULES[scaling.kind](position, scaling, position_ids), factor)


def plain(position: PositionConfig, scaling: RopeScaling, position_ids: Ints) -> Array:
    """theta^(-2i/r): (r/2). RoFormer, arXiv:2104.09864, section 3.2."""
    return _powers(position.theta, position.rotary_dim)


def linear(position: PositionConfig, scaling: RopeScaling, position_ids: Ints) -> Array:
    """theta^(-2i/r) / factor: as if positions lay closer together. arXiv:2306.15595."""
    return plain(position, scaling, position_ids) / scaling.factor


def dynamic(position: PositionConfig, scaling: RopeScaling, position_ids: Ints) -> Array:
    """Dynamic NTK: theta grows once the input is longer than what was trained on.

    theta' = theta (factor · n/n_0 - (factor - 1))^(r / (r - 2)), n the largest position plus one,
    n_0 = original_positions, n >= n_0. Each row of a batch has its own n: (r/2) or (b, r/2).
    """
    n = np.maximum(position_ids.max(axis=-1) + 1, scaling.original_positions)
    stretch = scaling.factor * n / scaling.original_positions - (scaling.factor - 1.0)
    r = position.rotary_dim
    return _powers(position.theta * stretch[..., None] ** (r / (r - 2)), r)


def yarn(position: PositionConfig, scaling: RopeScaling, position_ids: Ints) -> Array:
    """Fast pairs stay, slow pairs are divided by factor, those between go over linearly.

    A pair that turns b times over original_positions has the index
    r ln(original_positions / (2π b)) / (2 ln theta); the ramp runs from that of beta_fast to that
    of beta_slow. YaRN, arXiv:2309.00071, section 3.2.
    """
    r, kept = position.rotary_dim, plain(position, scaling, position_ids)

    def index(turns: float) -> float:
        return r * log(scaling.original_positions / (turns * 2 * pi)) / (2 * log(position.theta))

    low = max(floor(index(scaling.beta_fast)), 0)
    high = min(ceil(index(scaling.beta_slow)), r - 1)
    width = high - low if high != low else 0.001
    ramp = np.clip((np.arange(r // 2) - low) / width, 0.0, 1.0)
    return kept * (1.0 - ramp) + kept / scaling.factor * ramp


def llama3(position: PositionConfig, scaling: RopeScaling, position_ids: Ints) -> Array:
    """Pairs of a short wavelength stay, of a long one are divided by factor, between them a blend.

    A pair turns t = original_positions · frequency / 2π times over what was trained on: it stays
    from high_freq_factor turns on, is divided below low_freq_factor. Llama 3.1's code.
    """
    kept = plain(position, scaling, position_ids)
    turns = scaling.original_positions * kept / (2 * pi)
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    share = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return kept * share + kept / scaling.factor * (1.0 - share)


Rule = Callable[[PositionConfig, RopeScaling, Ints], Array]

_RULES: Mapping[str, Rule] = {
    "none": plain,
    "linear": linear,
    "dynamic": dynamic,
    "yarn": yarn,
    "llama3": llama3,
}


def _powers(theta: float | Array, r: int) -> Array:
    even = np.arange(0, r, 2)
    return np.asarray(theta ** -(even / r))
