"""A family's config against a file's tensors, by their headers: everything wrong at once."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice

from compute.checkpoints.family import Family
from compute.checkpoints.faults import fault, nearest, refused
from compute.checkpoints.header import MOST_TENSORS, Entry
from compute.checkpoints.safetensors_file import FLOATS
from compute.checkpoints.stored import Shape, Stored
from compute.config import ModelConfig
from compute.errors import MOST_FAULTS, Fault, ModelError, refuse_if

_OLD_NAMES = (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias"))
_PLACE = "model.safetensors"


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is read, and what is left: a file's name -> what of it."""

    stored: Mapping[str, Stored]
    left_out: Mapping[str, str]


def variant(family: Family, entries: Mapping[str, Entry]) -> Family:
    """The family itself, or the variant of it whose mark is among the file's names."""
    for each in family.variants:
        if any(each.marks.fullmatch(_known(each, name)) for name in entries):
            return each
    return family


def known_names(family: Family, entries: Mapping[str, Entry]) -> dict[str, str]:
    """The name that a family knows -> the file's: without prefix, old names as they are now."""
    found: dict[str, str] = {}
    faults = []
    for name in entries:
        known = _known(family, name)
        if known in found:
            detail = f"{name} and {found[known]} are the same tensor."
            faults.append(fault((_PLACE, name), detail))
        found[known] = name
    refuse_if(ModelError, faults[:MOST_FAULTS])
    return found


def fitted(
    family: Family,
    config: ModelConfig,
    names: Mapping[str, str],
    entries: Mapping[str, Entry],
    readable: Collection[str] = FLOATS.keys(),
) -> Fitted:
    """Where each tensor of the config lies, or a ModelError with every misfit.

    names: from `known_names`. readable: the dtypes that a weight may be stored as.
    """
    refuse_depth(config, len(entries))
    stored = family.stored(config)
    needed = {
        name: shape for x in stored.values() for name, shape in zip(x.names, x.shapes, strict=True)
    }
    faults = chain(
        _faults(family, needed, names, entries), _unreadable(needed, names, entries, readable)
    )
    refuse_if(ModelError, list(islice(faults, MOST_FAULTS)))
    rows = {names[x.names[0]]: x.left for x in stored.values() if x.left}
    whole = {actual: "whole" for known, actual in names.items() if known not in needed}
    return Fitted({ours: _renamed(x, names) for ours, x in stored.items()}, {**whole, **rows})


def refuse_depth(config: ModelConfig, count: int) -> None:
    """Before its tensors are listed: a config of more blocks than the file has tensors."""
    blocks = config.n_layers + (0 if config.encoder is None else config.encoder.n_layers)
    if blocks > count or blocks * max(config.ffn.n_experts, 1) > MOST_TENSORS:
        detail = f"{_PLACE} has fewer tensors than the config has blocks."
        raise refused(_PLACE, detail, blocks, count)


def shared_names(stored: Mapping[str, Stored]) -> Mapping[str, int]:
    """The file's tensors that several of ours are read from, and how many."""
    counted = Counter(name for x in stored.values() for name in x.names)
    return {name: count for name, count in counted.items() if count > 1}


def _known(family: Family, name: str) -> str:
    prefix = next((x for x in family.prefixes if name.startswith(x)), "")
    for old, now in _OLD_NAMES:
        if name.endswith(old):
            return name.removeprefix(prefix).removesuffix(old) + now
    return name.removeprefix(prefix)


def _faults(
    family: Family,
    needed: Mapping[str, Shape],
    names: Mapping[str, str],
    entries: Mapping[str, Entry],
) -> Iterator[Fault]:
    for known, shape in needed.items():
        if known not in names:
            yield fault((_PLACE, known), f"{known} is missing.", list(shape))
        else:
            yield from _misfits(names[known], shape, entries[names[known]].shape)
    missing = list(islice((known for known in needed if known not in names), MOST_FAULTS))
    for known, actual in names.items():
        if known not in needed and not family.ignored.fullmatch(known):
            detail = f"{actual} is not of this config.{nearest(known, missing)}"
            yield fault((_PLACE, actual), detail)


def _misfits(name: str, shape: Shape, found: Shape) -> Iterator[Fault]:
    if found != shape:
        detail = f"{name} has the wrong shape: {list(found)}, not {list(shape)}."
        yield fault((_PLACE, name), detail, list(shape), list(found))


def _unreadable(
    needed: Mapping[str, Shape],
    names: Mapping[str, str],
    entries: Mapping[str, Entry],
    readable: Collection[str],
) -> Iterator[Fault]:
    for name in (names[known] for known in needed if known in names):
        dtype = entries[name].dtype
        if dtype not in readable:
            detail = f"{name} is of dtype {dtype}; a weight is of {', '.join(readable)}."
            yield fault((_PLACE, name), detail, list(readable), dtype)


def _renamed(stored: Stored, names: Mapping[str, str]) -> Stored:
    return Stored(tuple(names[x] for x in stored.names), stored.shapes, stored.make, stored.left)
