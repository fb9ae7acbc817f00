"""What stands in memory while a model runs, part by part: weights, cache, activations, the rest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from compute.config import ModelConfig
from compute.sizing import architecture
from compute.sizing.formats import ActivationFormat, CacheFormat, Format
from compute.sizing.memory import activations, kv_cache, weight_bytes
from compute.sizing.memory.weight_bytes import Kept
from compute.sizing.vocabulary import Kind, Workload

Included = Literal["weights", "kv_cache", "activations"]
WindowPolicy = Literal["allocation", "lower_bound"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What memory there is, and what stands in it beside the model."""

    budget: int
    utilisation: float = 1.0
    overhead: int = 0

    @property
    def usable(self) -> int:
        """Whole bytes of budget · utilisation; a decimal is meant as it is written."""
        return int(self.budget * Fraction(repr(self.utilisation)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What is counted and how it is stored. windows: a windowed block's cache as engines with
    alike pages allocate it, or only what its window needs. source: None, as many as positions."""

    include: Sequence[Included] = ("weights", "kv_cache")
    weights: Format = field(default_factory=Format)
    kept: Kept = field(default_factory=Kept)
    cache: CacheFormat = field(default_factory=CacheFormat)
    activations: ActivationFormat = field(default_factory=ActivationFormat)
    windows: WindowPolicy = "allocation"
    source: int | None = None


def included(config: ModelConfig) -> tuple[Included, ...]:
    """What is counted where nothing is said: weights and cache; without a cache activations."""
    return ("weights", "kv_cache") if architecture.caches(config) else ("weights", "activations")


def parts_at(
    config: ModelConfig, held: Held, room: Room, batch: int, tokens: int
) -> dict[str, int]:
    """Bytes of each part: of weights and overhead alone where there is no position."""
    return {**constant(config, held, room), **growing(config, held, batch, tokens)}


def kind(config: ModelConfig, held: Held) -> Kind:
    """What the bytes are: activations are an estimate, a windowed cache a bound."""
    if "activations" in held.include:
        return "estimate"
    windowed = any(window is not None for window, _ in architecture.windows(config))
    if "kv_cache" not in held.include or not windowed:
        return "exact"
    return "upper_bound" if held.windows == "allocation" else "lower_bound"


def constant(config: ModelConfig, held: Held, room: Room) -> dict[str, int]:
    weights = weight_bytes.size(config, held.weights, held.kept).total
    made = {"weights": int(weights)} if "weights" in held.include else {}
    return {**made, "overhead": room.overhead}


def growing(config: ModelConfig, held: Held, batch: int, tokens: int) -> dict[str, int]:
    """Bytes of what grows with sequences and positions; none without any."""
    return dict(_grown(config, held, batch, tokens))


def _grown(
    config: ModelConfig, held: Held, batch: int, tokens: int
) -> Iterator[tuple[Included, int]]:
    nothing = batch == 0 or tokens == 0
    source = tokens if held.source is None else held.source
    run = Workload(batch=batch, tokens=tokens, source=source if config.cross_attention else 0)
    if "kv_cache" in held.include:
        yield "kv_cache", 0 if nothing else _cache(config, run, held)
    if "activations" in held.include:
        yield "activations", 0 if nothing else _peak(config, run, held)


def _peak(config: ModelConfig, run: Workload, held: Held) -> int:
    return int(activations.inference_peak(config, run, held.activations).ledger.total)


def _cache(config: ModelConfig, run: Workload, held: Held) -> int:
    found = kv_cache.size(config, run, held.cache)
    ledger = found.allocation if held.windows == "allocation" else found.lower_bound
    return int(ledger.total)
