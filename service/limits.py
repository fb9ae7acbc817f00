"""The limits of size and work, weighed before anything is made; what would fit where one breaks.

One rule for the answer: all of what was asked, or a 413 that says how large each part is and
what to select; never a silent part of it.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property

import orjson
from pydantic import JsonValue

from compute import cost, selection, stages
from compute.checkpoints.text import Text
from compute.checkpoints.tokenizer_rules import LONGEST_TOKEN
from compute.config import ModelConfig
from compute.cost import Cost
from compute.errors import Place
from compute.selection import Scene, Selection, Wanted
from compute.types import AXES, DType, Inputs, Selected
from schemas.inputs import InputAsked
from schemas.model import ModelAsked
from schemas.problems import Advice, BrokenLimit, Estimate
from service.errors import TooLarge
from service.settings import Settings

TEXT_BYTES = {"float32": 12, "float64": 21}
"""Bytes of JSON a number takes, a little above the mean of bell-shaped numbers."""

_READ = ("tensor", "token_ids", "text")
_MOST_ADVICE = 4096  # bytes: a problem is short, and tells its limit and estimate too

USE = ("logits", "resid_post", "attn.pattern", "attn_out", "ffn_out", "resid_pre", "resid_mid")
"""The stages that are kept first where not all fit; the others follow, small ones first."""

_NOTHING_FITS = (
    "Nothing of this run fits: ask for fewer positions, a smaller batch or model, "
    "or have the limit raised."
)
_FLOPS_A_SECOND = 2e10
_SECONDS_A_NUMBER = 5e-8
BLOCK_FLOPS = 5_000_000
"""What a block run once more costs beside its products, told in flops of the same time: where
calls run small blocks thousands of times it is nearly all."""

WEIGHT_FLOPS = 6
"""The same for a weight read for one row alone: memory is slower than products."""

_FEW_CHARACTERS = 1 << 19  # of tokens, which fit in any answer
_IDENTITY_BYTES = 32 << 20  # float64 copies, made in blocks


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


def check_config(config: ModelConfig, asked: ModelAsked, settings: Settings) -> None:
    """Raise TooLarge for a model, or an encoder, beyond d_model or blocks."""
    check("d_model", config.d_model, settings, place=_of_model(asked, "d_model"))
    check("blocks", config.n_layers, settings, place=_of_model(asked, "n_layers"))
    if config.encoder is not None:
        check("blocks", config.encoder.n_layers, settings, place=_of_encoder(asked))


def _of_encoder(asked: ModelAsked) -> Place:
    """Where a request says how deep the encoder is, or what brings that."""
    encoder = None if asked.config is None else asked.config.encoder
    said = encoder is not None and "n_layers" in encoder.model_fields_set
    return (*_of_model(asked, "encoder"), *(("n_layers",) if said else ()))


def _of_model(asked: ModelAsked, field: str) -> Place:
    """Where a request says a field of the config, or names the model that has it."""
    if asked.config is not None and field in asked.config.model_fields_set:
        return ("model", "config", field)
    return ("model", "name" if asked.name is not None else "preset")


def check_weight_ranks(asked: ModelAsked, settings: Settings) -> None:
    """Raise TooLarge for a tensor of the weights nested deeper than rank."""
    for name, values in asked.weights.tensors.items():
        check("rank", values.ndim, settings, place=("model", "weights", "tensors", name))


def check_rank(asked: InputAsked, settings: Settings) -> None:
    """Raise TooLarge for an input's tensor nested deeper than rank."""
    if asked.tensor is not None:
        check("rank", asked.tensor.ndim, settings, place=("input", "tensor"))


def check_texts(asked: InputAsked, settings: Settings) -> None:
    """Raise TooLarge for more texts than batch, before any is made into tokens."""
    texts = 1 if asked.text is None else len(asked.text.strings)
    check("batch", texts, settings, place=("input", "text"))


def check_input(read: Inputs, asked: InputAsked, settings: Settings) -> None:
    """Raise TooLarge for an input beyond positions or batch."""
    place = ("input", next(name for name in _READ if getattr(asked, name) is not None))
    check("positions", read.positions, settings, place=place)
    check("batch", read.batch or 1, settings, place=place)


def check_tokens(read: Inputs, text: Text | None, settings: Settings) -> None:
    """Raise TooLarge for ids whose tokens, which the answer names, are too long together."""
    rows = [x for x in (read, read.memory) if x is not None]
    ids = [x.token_ids for x in rows if x.token_ids is not None]
    most = max(settings.answer_elements, _FEW_CHARACTERS)
    if text is None or LONGEST_TOKEN * sum(x.size for x in ids) <= most:
        return
    got = sum(map(text.characters, ids))
    if got > most:
        limit: BrokenLimit = {"name": "answer_elements", "value": most, "got": got}
        detail = (
            f"The input's tokens, which the answer names, have {got:,} characters; "
            f"the limit is {most:,}, as for numbers: send fewer positions."
        )
        raise TooLarge(limit=limit, detail=detail, place=("input",))


def check(
    name: str, got: int, settings: Settings, *, place: Place = (), advice: Advice | None = None
) -> None:
    """Raise TooLarge where there are more than the limit of this name allows."""
    most = getattr(settings, name)
    if got > most:
        limit: BrokenLimit = {"name": name, "value": most, "got": got}
        raise TooLarge(limit=limit, advice=advice, place=place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a call needs beyond a single traced run: numbers it answers, bytes it holds at once
    (weights, kept arrays, temporaries), flops, and its parts, (what, numbers of the answer)."""

    elements: int
    bytes: int
    flops: int
    parts: Sequence[tuple[str, int]] = ()


def check_need(need: Need, dtype: DType, settings: Settings, advice: str) -> int:
    """The bytes of a call with its answer's text; TooLarge, with the estimate, beyond a limit."""
    total = need.bytes + TEXT_BYTES[dtype] * need.elements + _IDENTITY_BYTES
    needed = {
        "answer_elements": need.elements,
        "memory_bytes": total,
        "work_flops": need.flops,
    }
    for name, got in needed.items():
        most = getattr(settings, name)
        if got > most:
            raise TooLarge(
                limit={"name": name, "value": most, "got": got},
                estimate=_estimate_of(need, total),
                advice={"text": advice},
            )
    return total


def _estimate_of(need: Need, total: int) -> Estimate:
    parts = sorted(need.parts, key=lambda part: (-part[1], part[0]))
    return {
        "elements": need.elements,
        "bytes": total,
        "seconds": _seconds(need.flops, need.elements),
        "parts": [{"stage": name, "elements": count} for name, count in parts],
    }


def _seconds(flops: int, elements: int) -> float:
    return round(flops / _FLOPS_A_SECOND + elements * _SECONDS_A_NUMBER, 3)


def check_work(work: Work, settings: Settings) -> None:
    """Raise TooLarge, with the estimate by stage and a selection that fits, beyond a limit."""
    price = work.cost
    broken = next(_broken(price, work.dtype, settings), None)
    if broken is None:
        return
    name, value, got = broken
    raise TooLarge(
        limit={"name": name, "value": value, "got": got},
        estimate=estimate(work, with_weights=name == "memory_bytes"),
        advice=_advice(work, settings),
    )


def _broken(price: Cost, dtype: DType, settings: Settings) -> Iterator[tuple[str, int, int]]:
    needed = {
        "answer_elements": price.elements,
        "memory_bytes": memory_bytes(price, dtype),
        "work_flops": price.flops,
    }
    for name, got in needed.items():
        most = getattr(settings, name)
        if got > most:
            yield name, most, got


def memory_bytes(price: Cost, dtype: DType) -> int:
    """Memory of a request: its run and the text of its answer."""
    return price.bytes + TEXT_BYTES[dtype] * price.elements + _IDENTITY_BYTES


def estimate(work: Work, *, with_weights: bool) -> Estimate:
    """The cost as a problem tells it, parts by stage over the blocks asked for, largest first."""
    price = work.cost
    return {
        "elements": price.elements,
        "bytes": memory_bytes(price, work.dtype),
        "seconds": _seconds(price.flops, price.elements),
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
    price = Work(work.scene, candidate, work.dtype).cost
    return next(_broken(price, work.dtype, settings), None) is None


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
