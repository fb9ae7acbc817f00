"""RoPE's frequencies, plain and stretched beyond the positions a model was trained on.

Linear: Position Interpolation (Chen et al. 2023), section 2.4. Dynamic: "NTK-aware" scaling with
the length at hand. YaRN: Peng et al. 2023, sections 3.2 to 3.4. Llama 3: as its weights came.
"""

import math

from oracle.functions import Config


def frequencies(rope: Config, length: int) -> list[float]:
    """How far each pair turns at each position; `length`: how many positions are in use."""
    scaling = rope.get("scaling", {"kind": "none"})
    width, theta = rope["rotary_dim"], rope["theta"]
    if scaling["kind"] == "dynamic":
        return plain(width, dynamic_theta(width, theta, scaling, length))
    kept = plain(width, theta)
    if scaling["kind"] == "linear":
        return [frequency / scaling["factor"] for frequency in kept]
    if scaling["kind"] == "yarn":
        return [yarn(i, width, theta, scaling) for i in range(width // 2)]
    if scaling["kind"] == "llama3":
        return [llama3(frequency, scaling) for frequency in kept]
    return kept


def plain(width: int, theta: float) -> list[float]:
    """θ^(-2i/r) for pair i."""
    return [theta ** (-2 * i / width) for i in range(width // 2)]


def dynamic_theta(width: int, theta: float, scaling: Config, length: int) -> float:
    """θ (s L / L₀ - (s - 1))^(r/(r-2)), L at least L₀. The one pair of r = 2 does not use θ."""
    original = scaling["original_positions"]
    longer = max(length, original)
    if width == 2:
        return theta
    stretch = scaling["factor"] * longer / original - (scaling["factor"] - 1)
    return float(theta * stretch ** (width / (width - 2)))


def yarn(i: int, width: int, theta: float, scaling: Config) -> float:
    """Pair i: its own frequency, that over the factor, or between them by the ramp."""
    low = math.floor(pair_turning(scaling["beta_fast"], width, theta, scaling))
    high = math.ceil(pair_turning(scaling["beta_slow"], width, theta, scaling))
    low, high = max(low, 0), min(high, width - 1)
    span = high - low if high != low else 0.001
    ramp = min(max((i - low) / span, 0.0), 1.0)
    frequency = theta ** (-2 * i / width)
    return float((1 - ramp) * frequency + ramp * frequency / scaling["factor"])


def pair_turning(turns: float, width: int, theta: float, scaling: Config) -> float:
    """The pair, as a real number, that makes so many turns in the original positions:
    L₀ θ^(-2i/r) / 2π = turns."""
    original = scaling["original_positions"]
    return width * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))


def llama3(frequency: float, scaling: Config) -> float:
    """Short waves are kept, long ones divided by the factor, those between are mixed."""
    wavelength = 2 * math.pi / frequency
    original, factor = scaling["original_positions"], scaling["factor"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    if wavelength < original / high:
        return frequency
    if wavelength > original / low:
        return float(frequency / factor)
    kept = (original / wavelength - low) / (high - low)
    return float((1 - kept) * frequency / factor + kept * frequency)


def amplitude(rope: Config) -> float:
    """What cosines and sines are multiplied by: YaRN's attention factor, else 1."""
    scaling = rope.get("scaling", {"kind": "none"})
    return float(scaling["attention_factor"]) if scaling["kind"] == "yarn" else 1.0
