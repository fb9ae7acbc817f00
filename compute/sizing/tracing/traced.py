"""A trace as the service returns it: how many numbers, bytes and characters, stage by stage.

The stages are the catalogue's, chosen as a trace chooses them, and the cost is admission's own.
One block of each kind is resolved and multiplied, so nothing grows with the depth.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from compute import cost, stages
from compute.config import ModelConfig
from compute.cost import Cost
from compute.selection import Scene, Wanted
from compute.sizing.ledger import Ledger, Part
from compute.sizing.quantity import Quantity, number
from compute.sizing.tracing import alike
from compute.sizing.tracing.shown import Shown
from compute.sizing.vocabulary import Workload
from compute.types import DType, Selected


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """A trace before it is run: numbers and bytes of its arrays by stage, its cost as admission
    counts it, the member `tensors` as JSON about and at most; why stages are absent, by name."""

    elements: Ledger
    bytes: Ledger
    cost: Cost
    json: int
    json_at_most: int
    absent: Mapping[str, str]


def at_most(shown: Shown) -> int:
    """Bytes of a stage as nested lists, at most."""
    return shown.json_at_most()


def scene_of(
    config: ModelConfig, workload: Workload, *, tokens: bool, memory_tokens: bool
) -> Scene:
    """What a trace of a workload is resolved against: nothing cached; one sequence has no batch
    axis. tokens, memory_tokens: what is read is ids."""
    batch = workload.batch if workload.batch > 1 else None
    lengths = stages.dimensions(config, workload.tokens, batch, workload.source)
    return Scene(config, tokens, lengths, memory_tokens)


def predict(scene: Scene, asked: Sequence[Selected] | None, dtype: DType) -> Predicted:
    """A trace of a selection, None for the default; or the error that a trace would be."""
    found = alike.resolve(asked, scene)
    shown = [Shown(each, scene, dtype, found.alike) for each in found.selection.wanted]
    return Predicted(
        elements=Ledger(unit="elements", parts=_parts(shown)),
        bytes=Ledger(unit="bytes", parts=_parts(shown, dtype)),
        cost=cost.estimate(scene, found.selection, dtype, found.alike),
        json=2 + sum(each.json() for each in shown),
        json_at_most=2 + sum(each.json_at_most() for each in shown),
        absent=found.selection.absent,
    )


def tensors_at_most(
    scene: Scene, wanted: Sequence[Wanted], dtype: DType, size: Callable[[Shown], int] = at_most
) -> int:
    """Bytes of JSON that tensors of stages take at most, the member `tensors` of a trace; or the
    sum of another bound, which alike stages with names of the same length share."""
    known: dict[tuple[object, ...], int] = {}
    total = 2
    for each in wanted:
        stack, where = stages.stack_of(each.name), id(each.where) if each.where else 0
        key = (stack, each.stage.name, each.summary, where, len(each.name))
        if key not in known:
            known[key] = size(Shown(each, scene, dtype))
        total += known[key]
    return total


def _parts(shown: Sequence[Shown], dtype: DType | None = None) -> list[Part]:
    """A part for each stage of a kind; with a dtype in bytes."""
    groups: dict[tuple[object, ...], list[Shown]] = {}
    for each in shown:
        groups.setdefault(each.key, []).append(each)
    alone = Counter(_kind(group[0].wanted) for group in groups.values())
    return [_part(group, alone, dtype) for group in groups.values()]


def _part(group: Sequence[Shown], alone: Mapping[str, int], dtype: DType | None) -> Part:
    first, count = group[0], sum(each.times for each in group)
    name, size = _kind(first.wanted), first.each()
    return Part(
        id=name if alone[name] == 1 else first.wanted.name,
        each=size if dtype is None else size * _width(first.wanted, dtype),
        count=count,
        letter=_letter(first, count),
    )


def _width(wanted: Wanted, dtype: DType) -> Quantity:
    return number(cost.stage_width(wanted.name, cost.BYTES[dtype]))


def _kind(wanted: Wanted) -> str:
    stack = stages.stack_of(wanted.name)
    return f"{stack}blocks.{wanted.stage.name}" if wanted.stage.level == "block" else wanted.name


def _letter(shown: Shown, count: int) -> str:
    """L where all blocks of the stack have it, else the number of those that do."""
    stack = shown.stack
    return stack.letter if count == stack.config.n_layers else str(count)
