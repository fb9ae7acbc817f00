"""Which stages a spelling means: names, symbols, other libraries' names, patterns with `*`."""

import fnmatch
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from compute import stages
from compute.config import ModelConfig
from compute.stages import Stage
from compute.tensors import ENCODER

_SECOND = ("cross.", "mlm_head.")
"""Stages that leave a short name to another that has it."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """A stage of some layers of a stack that a spelling means.

    `outright`: no wildcard was needed for the stage.
    """

    stage: Stage
    layers: tuple[int, ...]
    outright: bool
    stack: str = ""

    def names(self) -> Iterator[str]:
        """The full names."""
        return (stages.full_name(self.stage, layer, self.stack) for layer in self.layers)


def meanings(spelling: str, config: ModelConfig) -> list[Meaning]:
    """The stages a spelling means under a config, in the catalogue's order; none if unknown.

    `blocks.{layer}.{stage}` with `*` in either part; a bare stage or alias means every block; `*`
    alone or across dots is matched against whole names too. A wildcard in the stage's part meets
    the stages of the default answer only; derived ones beside it must be spelled out. `encoder.`
    before it all means the encoder's stages, and a `*` that comes first meets those too.
    """
    of_encoder: list[Meaning] = []
    if config.encoder is not None and spelling.startswith((ENCODER, "*")):
        own = _in_stack(spelling.removeprefix(ENCODER), config.encoder)
        of_encoder = [replace(meaning, stack=ENCODER) for meaning in own]
    return of_encoder + ([] if spelling.startswith(ENCODER) else _in_stack(spelling, config))


def _in_stack(spelling: str, config: ModelConfig) -> list[Meaning]:
    layer_part, stage_part = _parts(spelling)
    if "*" in stage_part:
        return list(_met(layer_part, stage_part, config))
    stage = spellings(config).get(stage_part)
    layers = _layers(stage, layer_part, config.n_layers) if stage else ()
    return [Meaning(stage, layers, True)] if stage and layers else []


def _met(layer_part: str | None, stage_part: str, config: ModelConfig) -> Iterator[Meaning]:
    matches = _pattern(stage_part).fullmatch
    for stage in (stage for stage in stages.STAGES if stage.by_default):
        names = _names(config)[stage.name]
        layers = _layers(stage, layer_part, config.n_layers)
        if not any(matches(name) for name in names):
            whole = layers if stage.level == "block" and layer_part is None else ()
            layers = tuple(x for x in whole if any(matches(f"blocks.{x}.{n}") for n in names))
        if layers:
            yield Meaning(stage, layers, False)


def why_unknown(spelling: str, config: ModelConfig) -> str:
    """Why a spelling means no stage here: its block, its config, its being short, or unknown."""
    if spelling.startswith(ENCODER):
        if config.encoder is None:
            return "This model has no encoder."
        return why_unknown(spelling.removeprefix(ENCODER), config.encoder)
    layer_part, wanted = _parts(spelling)
    known = spellings(config).get(wanted)
    if known is not None and known.level == "model":
        return f"{wanted} belongs to the model, not to a block: leave the block out."
    if known is not None or (layer_part is not None and wanted == "*"):
        return f"There is no such block; the blocks are 0 to {config.n_layers - 1}."
    ends = sorted(name for name in spellings(config) if name.endswith(f".{wanted}"))
    if ends:
        return f"{wanted} is the end of several names: write {', '.join(ends)}."
    return _of_other_configs(wanted) or "No stage is called so."


def _of_other_configs(wanted: str) -> str | None:
    """Where a name means a stage, the same one, under other configs only."""
    meant = {
        (stage.name, when)
        for stage in stages.STAGES
        for name, when in _conditional(stage)
        if wanted in (name, _last(name))
    }
    if len({name for name, _ in meant}) != 1 or any(when == "always" for _, when in meant):
        return None
    name, when = min(meant)
    return f"{wanted} means {name} in {when} configs only."


def _conditional(stage: Stage) -> Iterator[tuple[str, str]]:
    """Symbol and aliases of a stage, each with the configs in which it means the stage."""
    if stage.symbol:
        yield stage.symbol, stage.symbol_when
    yield from ((alias.name, alias.when) for alias in stage.aliases)


@lru_cache(maxsize=64)
def spellings(config: ModelConfig) -> Mapping[str, Stage]:
    """Every spelling of every stage under a config: names, symbols, aliases, and the last part
    of a dotted one where it is not ambiguous (`hook_pattern`, `pattern`): `z` is attention's,
    cross-attention's is `cross.z`."""
    whole = {name: stage for stage in stages.STAGES for name in stages.names_for(stage, config)}
    short: dict[str, Stage | None] = {}
    for name, stage in whole.items():
        last = _last(name)
        if last in short and stage.name.startswith(_SECOND):
            continue
        short[last] = stage if short.get(last, stage) is stage else None
    unambiguous = {name: stage for name, stage in short.items() if stage is not None}
    return {**unambiguous, **whole}


@lru_cache(maxsize=64)
def _names(config: ModelConfig) -> Mapping[str, list[str]]:
    """Stage name -> all its spellings under a config."""
    names: dict[str, list[str]] = {stage.name: [] for stage in stages.STAGES}
    for name, stage in spellings(config).items():
        names[stage.name].append(name)
    return names


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
