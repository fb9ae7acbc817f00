"""A selection against a model and an input, weighed: what it costs, what of it would fit.

One rule for the answer: all of what was asked, or a 413 that says how large each part is and
what to select; never a silent part of it.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace

import orjson
from pydantic import JsonValue

from compute import selection, stages
from compute.config import ModelConfig
from compute.cost import BYTES
from compute.selection import Selection, Wanted
from compute.types import AXES, Selected
from schemas.problems import Advice, BrokenLimit, Estimate
from service import limits
from service.errors import TooLarge
from service.forms.form import LINES, SAFETENSORS
from service.settings import Settings
from service.traced_work import Work

_MOST_ADVICE = 4096  # bytes: a problem is short, and tells its limit and estimate too

USE = ("logits", "resid_post", "attn.pattern", "attn_out", "ffn_out", "resid_pre", "resid_mid")
"""The stages that are kept first where not all fit; the others follow, small ones first."""

_AS_LINES = (
    "All of it fits as JSON Lines (Accept: application/jsonl), which come as they are computed."
)

OF_SEVERAL = (
    'Select fewer stages or rows, send "clean": false, measure less, or change stages by fewer '
    "other inputs: each of those is a run of its own."
)
"""Advice where a smaller selection saves no run: changes and measures are made in runs of their
own."""

_NOTHING_FITS = (
    "Nothing of this run fits: ask for fewer positions, a smaller batch or model, "
    "or have the limit raised."
)


def check_work(work: Work, settings: Settings) -> None:
    """Raise TooLarge, with the estimate by stage and a selection that fits, beyond a limit."""
    broken = broken_limit(work, settings)
    if broken is not None:
        raise TooLarge(
            limit=broken,
            estimate=estimate(work, with_weights=broken["name"] == "memory_bytes"),
            advice=advice(work, settings),
        )


def broken_limit(work: Work, settings: Settings) -> BrokenLimit | None:
    """The first limit that a work is beyond."""
    for name, value, got in _broken(work, settings):
        return {"name": name, "value": value, "got": got}
    return None


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
        parts.append(("weights", work.cost.weight_bytes // BYTES[work.dtype]))
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


def advice(work: Work, settings: Settings) -> Advice:
    """What fits of what was asked, the stages people read most first; else all of it summed up;
    else a last row; else words. Beside it the form in which all of it fits."""
    if work.is_one_of_several:
        return {"text": OF_SEVERAL}
    selected = _selection_that_fits(work, settings)
    if selected is None:
        return {"text": _other_form(work, settings) or _NOTHING_FITS}
    told = _other_form(work, settings)
    return {"select": selected, "text": told} if told else {"select": selected}


def _selection_that_fits(work: Work, settings: Settings) -> list[JsonValue] | None:
    layers = (work.scene.config.n_layers - 1, 0)
    rows = [Selected(name=f"blocks.{x}.resid_post", where={"position": (-1,)}) for x in layers]
    smaller = [selection.resolve([row], work.scene) for row in rows]
    for candidate in (_what_fits(work, settings), _summed_up(work), *smaller):
        select = as_select(candidate, work.scene.config)
        told = len(orjson.dumps(select)) <= _MOST_ADVICE
        if candidate.wanted and told and _fits(replace(work, selected=candidate), settings):
            return select
    return None


def _other_form(work: Work, settings: Settings) -> str | None:
    """Words for the form in which all of a work fits."""
    told = {SAFETENSORS: limits.AS_BINARY, LINES: _AS_LINES}
    fitting = (x for x in work.others if x in told and _fits(_in_form(work, x), settings))
    return next((told[media] for media in fitting), None)


def _in_form(work: Work, media: str) -> Work:
    return replace(work, form=replace(work.form, media=media), streamed=media == LINES)


def _what_fits(work: Work, settings: Settings) -> Selection:
    """The selection's stages, added a kind at a time in the order of USE while they fit."""
    kinds = sorted(_by_kind(work), key=lambda part: (_use(part[0]), part[1], part[0]))
    chosen: set[str] = set()
    for kind, _ in kinds:
        if _fits(replace(work, selected=_only(work, chosen | {kind})), settings):
            chosen.add(kind)
    return _only(work, chosen)


def _summed_up(work: Work) -> Selection:
    return Selection(tuple(replace(w, summary=True) for w in work.selected.wanted), {})


def _only(work: Work, kinds: AbstractSet[str]) -> Selection:
    return Selection(tuple(w for w in work.selected.wanted if _kind(w) in kinds), {})


def _fits(work: Work, settings: Settings) -> bool:
    return broken_limit(work, settings) is None


def _broken(work: Work, settings: Settings) -> Iterator[tuple[str, int, int]]:
    price = work.cost
    return limits.beyond(price.elements, work.memory_bytes, price.flops, settings, work.form)


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
