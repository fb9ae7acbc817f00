"""Which stages a spelling means: names, symbols, other libraries' names, patterns with `*`."""

import fnmatch
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from compute import stages
from compute.config import ModelConfig
from compute.stages import Stage


@dataclass(frozen=True, slots=True)
class Meaning:
    """A stage of some layers that a spelling means; `outright`: no wildcard was needed for it."""

    stage: Stage
    layers: tuple[int, ...]
    outright: bool

    def names(self) -> Iterator[str]:
        """The full names."""
        return (stages.full_name(self.stage, layer) for layer in self.layers)


def meanings(spelling: str, config: ModelConfig) -> list[Meaning]:
    """The stages a spelling means under a config, in the catalogue's order; none if unknown.

    `blocks.{layer}.{stage}` with `*` in either part; a bare stage or alias means every block; `*`
    alone or across dots is matched against whole names. A wildcard in the stage's part meets the
    stages of the default answer only; derived ones beside it must be spelled out.
    """
    layer_part, stage_part = _parts(spelling)
    spelled = spellings(config)
    if "*" not in stage_part:
        found = [spelled[stage_part]] if stage_part in spelled else []
    else:
        met = {stage.name for name, stage in spelled.items() if _meets(stage_part, name, stage)}
        found = [stage for stage in stages.STAGES if stage.name in met and stage.by_default]
    outright = "*" not in stage_part
    return [
        Meaning(stage, layers, outright)
        for stage in found
        if (layers := _layers(stage, layer_part, config.n_layers))
    ]


def why_unknown(spelling: str, config: ModelConfig) -> str:
    """Why a spelling means no stage here: its block, its config, its being short, or unknown."""
    _, wanted = _parts(spelling)
    if "*" in wanted or wanted in spellings(config):
        return f"There is no such block; the blocks are 0 to {config.n_layers - 1}."
    ends = sorted(name for name in spellings(config) if name.endswith(f".{wanted}"))
    if ends:
        return f"{wanted} is the end of several names: write {', '.join(ends)}."
    return _of_other_configs(wanted) or "No stage is called so."


def _of_other_configs(wanted: str) -> str | None:
    for stage in stages.STAGES:
        if stage.symbol == wanted:
            return f"{wanted} means {stage.name} in {stage.symbol_when} configs only."
        for alias in stage.aliases:
            if wanted in (alias.name, _last(alias.name)):
                return f"{wanted} means {stage.name} in {alias.when} configs only."
    return None


@lru_cache(maxsize=64)
def spellings(config: ModelConfig) -> Mapping[str, Stage]:
    """Every spelling of every stage under a config: names, symbols, aliases, and the last part
    of a dotted one where it is not ambiguous (`hook_pattern`, `pattern`)."""
    whole = {name: stage for stage in stages.STAGES for name in stages.names_for(stage, config)}
    short: dict[str, Stage | None] = {}
    for name, stage in whole.items():
        last = _last(name)
        short[last] = stage if short.get(last, stage) is stage else None
    unambiguous = {name: stage for name, stage in short.items() if stage is not None}
    return {**unambiguous, **whole}


def _meets(pattern: str, name: str, stage: Stage) -> bool:
    matches = _pattern(pattern).fullmatch
    whole = f"blocks.0.{name}" if stage.level == "block" else name
    return bool(matches(name) or matches(whole))


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _parts(spelling: str) -> tuple[str | None, str]:
    """`blocks.0.attn.z` -> ("0", "attn.z"); `attn.z` -> (None, "attn.z"); `blocks.0` -> all."""
    if not spelling.startswith("blocks."):
        return None, spelling
    pieces = spelling.split(".", 2)
    return pieces[1], pieces[2] if len(pieces) == 3 else "*"


def _layers(stage: Stage, layer_part: str | None, n_layers: int) -> tuple[int, ...]:
    if stage.level == "model":
        return (0,) if layer_part is None else ()
    if layer_part is None:
        return tuple(range(n_layers))
    matches = _pattern(layer_part).fullmatch
    return tuple(layer for layer in range(n_layers) if matches(str(layer)))


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str]:
    """`*` for any part and nothing else special; fnmatch's form of it never backtracks far."""
    only_stars = text.replace("[", "[[]").replace("?", "[?]")
    return re.compile(fnmatch.translate(only_stars))
