"""Counts of a model under another shape than it has: what calculators and tables assume."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from compute.config import ModelConfig
from compute.sizing import architecture
from compute.sizing.holdings import holdings
from compute.sizing.quantity import Quantity, number
from compute.sizing.reconciling.differences import Change, Difference, less, relettered, whole
from compute.tensors import ENCODER

Letters = Mapping[str, Quantity]
Shaped = Callable[[ModelConfig], ModelConfig]
Named = Callable[[Letters], Mapping[str, Quantity]]


def assumptions(config: ModelConfig) -> Iterator[Difference]:
    """Other heads, other widths of a head, other ffns."""
    for name, group, words, shaped, named in _ASSUMED:
        other = _everywhere(config, shaped)
        changes = () if other == config else _changes(config, other, named)
        if changes:
            yield Difference(id=name, group=group, words=words, changes=changes)


def _everywhere(config: ModelConfig, shaped: Shaped) -> ModelConfig:
    encoder = None if config.encoder is None else shaped(config.encoder)
    return replace(shaped(config), encoder=encoder)


def _changes(config: ModelConfig, other: ModelConfig, named: Named) -> tuple[Change, ...]:
    """The parts that another shape changes, its letters written by those of the model."""
    before = {held.id: held for held in holdings(config)}
    after = {held.id: held for held in holdings(other)}
    letters: dict[str, Mapping[str, Quantity]] = {
        stack.prefix: named(architecture.letters(stack.config))
        for stack in architecture.stacks(config)
    }
    found = []
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if old and new and old.parameters == new.parameters:
            continue
        own = letters[ENCODER if name.startswith(ENCODER) else ""]
        made = relettered(whole(new), own) if new else None
        gone = whole(old) if old else number(0)
        found.append(Change(name, less(gone) if made is None else made - gone))
    return tuple(change for change in found if change.value)


def _full_heads(config: ModelConfig) -> ModelConfig:
    attention = config.attention
    if attention.kind == "none" or attention.mla is not None:
        return config
    return replace(config, attention=replace(attention, n_kv_heads=attention.n_heads))


def _divided_width(config: ModelConfig) -> ModelConfig:
    attention = config.attention
    if attention.kind == "none" or attention.mla or config.d_model % attention.n_heads:
        return config
    width = config.d_model // attention.n_heads
    return replace(config, attention=replace(attention, d_head=width, d_value=width))


def _full_divided(config: ModelConfig) -> ModelConfig:
    full, divided = _full_heads(config), _divided_width(config)
    return config if config in (full, divided) else _divided_width(full)


def _four_wide(config: ModelConfig) -> ModelConfig:
    if config.ffn.kind not in ("mlp", "gated"):
        return config
    return replace(config, ffn=replace(config.ffn, d_ff=4 * config.d_model))


def _two_matrices(config: ModelConfig) -> ModelConfig:
    ffn = config.ffn
    if ffn.kind == "moe":
        return replace(config, ffn=replace(ffn, expert="mlp"))
    return replace(config, ffn=replace(ffn, kind="mlp")) if ffn.kind == "gated" else config


def _two_four_wide(config: ModelConfig) -> ModelConfig:
    two, wide = _two_matrices(config), _four_wide(config)
    return config if config in (two, wide) else _two_matrices(wide)


def _gated(config: ModelConfig) -> ModelConfig:
    ffn = config.ffn
    return replace(config, ffn=replace(ffn, kind="gated")) if ffn.kind == "mlp" else config


def _h_for_g(letters: Letters) -> Mapping[str, Quantity]:
    return {"g": letters["h"]}


def _divided(letters: Letters) -> Mapping[str, Quantity]:
    if not letters["h"].value:
        return {}
    width = letters["d"] / letters["h"]
    return {"k": width, "v": width}


def _both(letters: Letters) -> Mapping[str, Quantity]:
    return {**_h_for_g(letters), **_divided(letters)}


def _four_d(letters: Letters) -> Mapping[str, Quantity]:
    return {"f": 4 * letters["d"]}


def _as_is(letters: Letters) -> Mapping[str, Quantity]:
    return {}


_ASSUMED: tuple[tuple[str, str, str, Shaped, Named], ...] = (
    (
        *("mha_assumed", "heads", "As many key/value heads as heads are assumed, g = h."),
        *(_full_heads, _h_for_g),
    ),
    ("d_head_assumed", "heads", "Heads of d/h are assumed, k = v = d/h.", _divided_width, _divided),
    (
        *("mha_and_d_head_assumed", "heads", "g = h and k = v = d/h are assumed."),
        *(_full_divided, _both),
    ),
    ("ffn_4d_assumed", "ffn", "An ffn of 4d is assumed, f = 4d.", _four_wide, _four_d),
    (
        *("two_matrices_assumed", "ffn", "An ffn of two matrices is assumed, without a gate."),
        *(_two_matrices, _as_is),
    ),
    (
        *("ffn_4d_of_two_assumed", "ffn", "An ffn of two matrices and 4d is assumed, f = 4d."),
        *(_two_four_wide, _four_d),
    ),
    ("gate_assumed", "ffn", "An ffn with a gate is assumed, three matrices.", _gated, _as_is),
)
