"""Rules of thumb beside the exact number, each with its error; and one pass by several ways to
count it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from compute.config import ModelConfig
from compute.sizing import architecture, parameters
from compute.sizing.operations import flops, training_flops
from compute.sizing.quantity import Exact, Quantity, q
from compute.sizing.vocabulary import PRESETS, ConventionPreset, Conventions, Workload

Of = Literal["forward", "train"]

SIDE_BY_SIDE: tuple[ConventionPreset, ...] = ("exact", "kaplan", "chinchilla", "palm", "megatron")


@dataclass(frozen=True, slots=True)
class Approximation:
    """A rule, what it stands for, its value in FLOP, and (value - exact) / exact."""

    name: str
    of: Of
    value: Quantity
    relative_error: float
    source: str


@dataclass(frozen=True, slots=True)
class Priced:
    """One pass, and its training, by a set of conventions."""

    preset: ConventionPreset
    conventions: Conventions
    forward: Exact
    train: Exact


def of(
    config: ModelConfig, workload: Workload, conventions: Conventions
) -> tuple[Approximation, ...]:
    """The rules of thumb against the exact numbers by the same conventions, in FLOP."""
    found = replace(conventions, multiply_add=2)
    exact = {
        "forward": flops.forward(config, workload, found).total,
        "train": training_flops.train(config, workload, found).model.total,
    }
    return tuple(
        Approximation(name, which, value, _error(value.value, exact[which]), source)
        for name, which, value, source in _rules(config, workload)
    )


def side_by_side(config: ModelConfig, workload: Workload) -> tuple[Priced, ...]:
    """The same workload by each set of conventions."""
    return tuple(
        Priced(
            name,
            PRESETS[name],
            flops.forward(config, workload, PRESETS[name]).total,
            training_flops.train(config, workload, PRESETS[name]).model.total,
        )
        for name in SIDE_BY_SIDE
    )


def _error(value: Exact, exact: Exact) -> float:
    return float(Fraction(value - exact) / Fraction(exact)) if exact else 0.0


def _rules(config: ModelConfig, workload: Workload) -> Iterator[tuple[str, Of, Quantity, str]]:
    batch, n = q("B", workload.batch), q("n", workload.tokens)
    kaplan = "arXiv:2001.08361, section 2.1"
    for suffix, held in _parameters(config).items():
        yield f"2N{suffix}", "forward", 2 * held * batch * n, kaplan
        yield f"6N{suffix}", "train", 6 * held * batch * n, kaplan
    yield from _by_width(config, batch, n)


def _by_width(
    config: ModelConfig, batch: Quantity, n: Quantity
) -> Iterator[tuple[str, Of, Quantity, str]]:
    letters, blocks = architecture.letters(config), q("L", config.n_layers)
    width, held = letters["d"], _parameters(config)[""]
    exact = 24 * batch * n * width**2 * blocks * (1 + n / (6 * width))
    yield "24BLnd²(1+n/6d)", "forward", exact, "arXiv:2104.04473, appendix, without the readout"
    per_token = 6 * held + 12 * blocks * letters["h"] * letters["k"] * n
    yield "palm", "train", per_token * batch * n, "arXiv:2204.02311, appendix B"


def _parameters(config: ModelConfig) -> Mapping[str, Quantity]:
    """What N may be: all, without embeddings, and of experts what one token meets."""
    counts = {name: count for name, (count, _) in parameters.counts(config).items()}
    found = {
        "": q("N", counts["all"]),
        "_non_embedding": q("N_non_embedding", counts["non_embedding"]),
    }
    if config.ffn.kind == "moe":
        found["_active"] = q("N_active", counts["active"])
    return found
