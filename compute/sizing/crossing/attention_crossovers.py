"""From how many positions attention takes as many operations as products with weights do."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from compute.config import MaskKind, ModelConfig
from compute.sizing import architecture
from compute.sizing.holdings import holdings
from compute.sizing.memory import kv_cache
from compute.sizing.operations import pairs
from compute.sizing.quantity import Quantity, ceil_div, number, q
from compute.sizing.vocabulary import Unit

MOST = 1 << 60
"""Beyond so many nothing is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """The least number at which it happens, None where it never does, and then why; the formula,
    with the numbers in it; what the number would be were it no whole one."""

    id: str
    unit: Unit
    value: int | None
    formula: str = ""
    substituted: str = ""
    ratio: float | None = None
    reason: str = ""


def none(name: str, unit: Unit, reason: str) -> Crossover:
    return Crossover(id=name, unit=unit, value=None, reason=reason)


def linear(config: ModelConfig) -> Quantity:
    """W: the numbers that a position is multiplied with in all blocks of the model's own stack."""
    met = [
        held.runs * int(held.used.value)
        for held in holdings(config)
        if held.role == "matrix" and held.reads == "rows" and held.id.startswith("blocks.")
    ]
    return q("W", sum(met))


def _of_pair(config: ModelConfig) -> Quantity:
    """h·(k + v): what one pair of a query and a key is multiplied with in one block."""
    x = architecture.letters(config)
    return x["h"] * (x["k"] + x["v"])


_NO_ATTENTION = "The model has no attention."


def full(config: ModelConfig) -> Crossover:
    """n* = ceil(W / (L·h·(k + v))): every pair counted, windows and mask or not."""
    name, blocks = "attention_full", q("L", config.n_layers)
    if config.attention.kind == "none":
        return none(name, "tokens", _NO_ATTENTION)
    ratio = linear(config) / (blocks * _of_pair(config))
    return _least(name, ceil_div(linear(config), blocks * _of_pair(config)), ratio)


def exact(config: ModelConfig) -> Crossover:
    """The least n with L·h·(k + v)·S(n) >= n·W, S(n) the pairs that are visible."""
    name, attention = "attention_exact", config.attention
    if attention.kind == "none":
        return none(name, "tokens", _NO_ATTENTION)
    windows = architecture.windows(config)
    if windows == ((None, config.n_layers),):
        return _without_windows(name, config)
    needed = Fraction(linear(config).value) / Fraction(_of_pair(config).value)
    seen = _seen(windows, attention.mask)
    if seen(MOST) < needed * MOST:
        reason = "Attention stays below: a block with a window sees no more than its window."
        return none(name, "tokens", reason)
    value = _first(lambda n: seen(n) >= needed * n)
    letters = " + ".join(
        f"{kv_cache.count_letter(window, windows)}·S_{window or 'none'}(n)" for window, _ in windows
    )
    formula = f"least n: h·(k + v)·({letters}) >= n·W"
    return Crossover(
        id=name,
        unit="tokens",
        value=value,
        formula=formula,
        substituted=f"{_of_pair(config).substituted} · {seen(value)} >= {value} · "
        f"{linear(config).substituted}",
        ratio=None,
    )


def _without_windows(name: str, config: ModelConfig) -> Crossover:
    """causal, S = n·(n + 1)/2: ceil(2·W / (L·h·(k + v))) - 1. full, S = n²: half of that."""
    blocks = q("L", config.n_layers)
    if config.attention.mask == "full":
        return replace(full(config), id=name)
    ratio = 2 * linear(config) / (blocks * _of_pair(config)) - 1
    least = ceil_div(2 * linear(config), blocks * _of_pair(config)) - 1
    return _least(name, least, ratio)


def _least(name: str, least: Quantity, ratio: Quantity) -> Crossover:
    return Crossover(
        id=name,
        unit="tokens",
        value=max(1, int(least.value)),
        formula=least.formula,
        substituted=least.substituted,
        ratio=float(ratio.value),
    )


def _seen(windows: tuple[tuple[int | None, int], ...], mask: MaskKind) -> Callable[[int], int]:
    """n -> the pairs of one head in all blocks."""

    def seen(n: int) -> int:
        rows, past = q("n", n), number(0)
        found = (number(c) * pairs.visible(rows, past, mask, w, "exact") for w, c in windows)
        return int(sum(each.value for each in found))

    return seen


def _first(holds: Callable[[int], bool]) -> int:
    """The least number from 1 from which it holds."""
    low, high = 0, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
