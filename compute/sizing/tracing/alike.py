"""Blocks that have the same stages, one standing for all of them: however deep a stack is.

Stages of one block are those of another but where only some blocks turn their queries and keys.
The last block of a kind stands for it, so that a run reaches as far as with all of them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from compute import selection, stages
from compute.config import ModelConfig
from compute.cost import Alike
from compute.errors import Fault, QuestionError
from compute.selection import Scene, Selection, Wanted
from compute.types import Selected

MOST_BLOCKS = 1024
"""Of a selection that names single blocks."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A selection in which one block stands for all of its kind: how many, by its prefix."""

    selection: Selection
    alike: Alike


@lru_cache(maxsize=64)
def kinds(config: ModelConfig) -> tuple[tuple[int, int], ...]:
    """(a kind's last block, how many there are) of a stack, in order."""
    last: dict[bool, int] = {}
    count: Counter[bool] = Counter()
    for layer, own in enumerate(config.layers):
        turns = config.position.kind == "rope" and own.theta is not None
        last[turns] = layer
        count[turns] += 1
    found = sorted((layer, count[turns]) for turns, layer in last.items())
    return tuple(found) or ((config.n_layers - 1, config.n_layers),)


@lru_cache(maxsize=64)
def _windows(config: ModelConfig) -> tuple[tuple[bool, int | None, int], ...]:
    """(whether it turns, window, how many blocks) of a stack that lists its blocks."""
    rope = config.position.kind == "rope"
    found = Counter((rope and own.theta is not None, own.window) for own in config.layers)
    return tuple((turns, window, count) for (turns, window), count in found.items())


def windows(name: str, scene: Scene, alike: Alike) -> list[tuple[int | None, int]]:
    """(window, how many blocks) of the blocks that a full name stands for."""
    block = stages.config_of(name, scene.config)
    prefix = prefix_of(name)
    stack = scene.config.encoder if stages.stack_of(name) else None
    listed = _windows(stack or scene.config)
    if prefix not in alike or not listed:
        return [(block.attention.window, alike.get(prefix, 1))]
    turns = block.position.kind == "rope"
    return [(window, count) for own, window, count in listed if own == turns]


def prefix_of(name: str) -> str:
    """`blocks.3.attn.z` -> `blocks.3.`; of model level the stack alone."""
    layer = stages.layer_of(name)
    return stages.stack_of(name) + ("" if layer is None else f"blocks.{layer}.")


def resolve(asked: Sequence[Selected] | None, scene: Scene) -> Resolved:
    """The selection, or a SelectionError; a QuestionError where single blocks of a stack of more
    than 1024 are named."""
    if asked is not None and not all(_means_every_block(each.name) for each in asked):
        _check_depth(scene.config)
        return Resolved(selection.resolve(asked, scene), {})
    own, encoder = scene.config, scene.config.encoder
    small = replace(_of_kinds(own), encoder=None if encoder is None else _of_kinds(encoder))
    found = selection.resolve(asked, replace(scene, config=small))
    wanted = tuple(replace(each, name=_named(each, own)) for each in found.wanted)
    return Resolved(Selection(wanted, found.absent), dict(_alike(own)))


def _means_every_block(name: str) -> bool:
    """Whether a spelling means the same of each block: it has no block's number in it, and no
    digit that a wildcard could leave to one."""
    own = name.removeprefix(stages.ENCODER)
    if own.startswith("blocks."):
        return own.split(".", 2)[1] == "*"
    return "*" not in own or not any(letter.isdigit() for letter in own)


def _check_depth(config: ModelConfig) -> None:
    deepest = max(config.n_layers, 0 if config.encoder is None else config.encoder.n_layers)
    if deepest > MOST_BLOCKS:
        detail = f"Single blocks can be named of stacks of {MOST_BLOCKS} blocks at most."
        fault = Fault(code="too_many_blocks", detail=detail, place=("select",), got=deepest)
        raise QuestionError([fault])


def _of_kinds(config: ModelConfig) -> ModelConfig:
    """The stack with one block of each kind."""
    found = kinds(config)
    layers = tuple(config.layers[layer] for layer, _ in found) if config.layers else ()
    return replace(config, n_layers=len(found), layers=layers)


def _named(wanted: Wanted, config: ModelConfig) -> str:
    """The full name in the whole stack."""
    layer, stack = stages.layer_of(wanted.name), stages.stack_of(wanted.name)
    if layer is None:
        return wanted.name
    own = (config.encoder if stack else None) or config
    return stages.full_name(wanted.stage, kinds(own)[layer][0], stack)


def _alike(config: ModelConfig) -> Iterator[tuple[str, int]]:
    for stack, own in ((stages.ENCODER, config.encoder), ("", config)):
        if own is not None:
            yield from ((f"{stack}blocks.{layer}.", count) for layer, count in kinds(own))
