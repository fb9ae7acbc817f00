"""A selection against a model and an input, weighed: what it costs, what of it would fit.

One rule for the answer: all of what was asked, or a 413 that says how large each part is and
what to select; never a silent part of it.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property

import orjson
from pydantic import JsonValue

from compute import cost, selection, stages
from compute.config import ModelConfig
from compute.cost import Cost
from compute.selection import Scene, Selection, Wanted
from compute.sizing.tracing import traced
from compute.types import AXES, DType, Selected
from schemas.problems import Advice, Estimate
from service import limits, trace_text
from service.errors import TooLarge
from service.settings import Settings

_MOST_ADVICE = 4096  # bytes: a problem is short, and tells its limit and estimate too

USE = ("logits", "resid_post", "attn.pattern", "attn_out", "ffn_out", "resid_pre", "resid_mid")
"""The stages that are kept first where not all fit; the others follow, small ones first."""

_NOTHING_FITS = (
    "Nothing of this run fits: ask for fewer positions, a smaller batch or model, "
    "or have the limit raised."
)


@dataclass(frozen=True)
class Work:
    """A selection against a model and an input, to be weighed."""

    scene: Scene
    selected: Selection
    dtype: DType

    @cached_property
    def cost(self) -> Cost:
        """What the run costs, worked out once."""
        return cost.estimate(self.scene, self.selected, self.dtype)

    @cached_property
    def tensors_bytes(self) -> int:
        """Bytes of JSON that the answer's tensors take at most."""
        return traced.tensors_at_most(self.scene, self.selected.wanted, self.dtype)

    @property
    def memory_bytes(self) -> int:
        """Memory of the run and its answer's text, at most."""
        beside = trace_text.beside(self.scene, self.selected.absent)
        return limits.memory_bytes(self.cost, self.tensors_bytes + beside.at_most)


def check_work(work: Work, settings: Settings) -> None:
    """Raise TooLarge, with the estimate by stage and a selection that fits, beyond a limit."""
    broken = next(_broken(work, settings), None)
    if broken is None:
        return
    name, value, got = broken
    raise TooLarge(
        limit={"name": name, "value": value, "got": got},
        estimate=estimate(work, with_weights=name == "memory_bytes"),
        advice=_advice(work, settings),
    )


def estimate(work: Work, *, with_weights: bool) -> Estimate:
    """The cost as a problem tells it, parts by stage over the blocks asked for, largest first."""
    price = work.cost
    return {
        "elements": price.elements,
        "bytes": work.memory_bytes,
        "seconds": limits.seconds(price.flops, price.elements),
        "parts": [{"stage": x, "elements": count} for x, count in _parts(work, with_weights)],
    }


def _parts(work: Work, with_weights: bool) -> list[tuple[str, int]]:
    """(stage, elements), the largest first: a stage of one block of several by its own name."""
    groups: dict[str, list[str]] = {}
    for wanted in work.selected.wanted:
        groups.setdefault(_kind(wanted), []).append(wanted.name)
    own = {
        kind: names[0]
        for kind, names in groups.items()
        if len(names) == 1 and not _is_every(names, work.scene.config)
    }
    parts = [(own.get(x, x), elements) for x, elements in _by_kind(work)]
    if with_weights:
        parts.append(("weights", work.cost.weight_bytes // cost.BYTES[work.dtype]))
    return sorted(parts, key=lambda part: (-part[1], part[0]))


def _by_kind(work: Work) -> list[tuple[str, int]]:
    """(stage over all blocks, elements), the largest first; equal ones by name."""
    elements: dict[str, int] = {}
    by_stage = work.cost.by_stage
    for wanted in work.selected.wanted:
        kind = _kind(wanted)
        elements[kind] = elements.get(kind, 0) + by_stage[wanted.name]
    return sorted(elements.items(), key=lambda part: (-part[1], part[0]))


def _kind(wanted: Wanted) -> str:
    if wanted.stage.level != "block":
        return wanted.name
    return f"{stages.stack_of(wanted.name)}blocks.*.{wanted.stage.name}"


def _advice(work: Work, settings: Settings) -> Advice:
    """What fits of what was asked, the stages people read most first; else all of it summed up;
    else a last row; else words."""
    layers = (work.scene.config.n_layers - 1, 0)
    rows = [Selected(name=f"blocks.{x}.resid_post", where={"position": (-1,)}) for x in layers]
    smaller = [selection.resolve([row], work.scene) for row in rows]
    for candidate in (_what_fits(work, settings), _summed_up(work), *smaller):
        select = as_select(candidate, work.scene.config)
        told = len(orjson.dumps(select)) <= _MOST_ADVICE
        if candidate.wanted and told and _fits(work, candidate, settings):
            return {"select": select}
    return {"text": _NOTHING_FITS}


def _what_fits(work: Work, settings: Settings) -> Selection:
    """The selection's stages, added a kind at a time in the order of USE while they fit."""
    kinds = sorted(_by_kind(work), key=lambda part: (_use(part[0]), part[1], part[0]))
    chosen: set[str] = set()
    for kind, _ in kinds:
        if _fits(work, _only(work, chosen | {kind}), settings):
            chosen.add(kind)
    return _only(work, chosen)


def _summed_up(work: Work) -> Selection:
    return Selection(tuple(replace(w, summary=True) for w in work.selected.wanted), {})


def _only(work: Work, kinds: AbstractSet[str]) -> Selection:
    return Selection(tuple(w for w in work.selected.wanted if _kind(w) in kinds), {})


def _fits(work: Work, candidate: Selection, settings: Settings) -> bool:
    return next(_broken(Work(work.scene, candidate, work.dtype), settings), None) is None


def _broken(work: Work, settings: Settings) -> Iterator[tuple[str, int, int]]:
    price = work.cost
    needed = work.memory_bytes
    return limits.beyond(price.elements, needed, price.flops, settings)


def _use(kind: str) -> int:
    name = kind.removeprefix("blocks.*.")
    return USE.index(name) if name in USE else len(USE)


def as_select(selected: Selection, config: ModelConfig) -> list[JsonValue]:
    """A selection as a request writes it, a stage of every block under one name."""
    alike: dict[object, list[Wanted]] = {}
    for wanted in selected.wanted:
        key = (_kind(wanted), wanted.summary, tuple(wanted.where.items()))
        alike.setdefault(key, []).append(wanted)
    return [item for group in alike.values() for item in _items(group, config)]


def _items(group: list[Wanted], config: ModelConfig) -> list[JsonValue]:
    if _is_every([wanted.name for wanted in group], config):
        return [_item(_kind(group[0]), group[0])]
    return [_item(wanted.name, wanted) for wanted in group]


def _is_every(names: list[str], config: ModelConfig) -> bool:
    """Whether a stage's full names are those of every block of its stack."""
    return len(names) == stages.config_of(names[0], config).n_layers


def _item(name: str, wanted: Wanted) -> JsonValue:
    if not wanted.where and not wanted.summary:
        return name
    where: dict[str, JsonValue] = {AXES[x]: list(wanted.where[x]) for x in wanted.where}
    return {"name": name, **where, **({"summary": True} if wanted.summary else {})}
