"""From a config.json to a resolved config, by its family."""

from collections.abc import Set as AbstractSet
from dataclasses import replace

from compute import config_rules
from compute.checkpoints.families.own import OWN
from compute.checkpoints.family import Family
from compute.checkpoints.faults import refused
from compute.checkpoints.fields import Fields
from compute.config import ModelConfig
from compute.errors import ComputeError, Fault, ModelError

_DEPTHS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers")
FILE = "config.json"
MOST_BLOCKS = 1024


def config_of(family: Family, fields: Fields, names: AbstractSet[str]) -> ModelConfig:
    """The config that a family makes of a config.json, or a ModelError with every fault.

    names: of the file's tensors, as the family knows them.
    """
    _refuse_depth(fields, len(names))
    if fields.has("quantization_config"):
        told = "holds quantized weights, which are not read; store them as F32, F16 or BF16."
        fields.fault("quantization_config", told)
    try:
        config = family.config(fields, names)
        fields.check()
        return config_rules.check(config)
    except ModelError:
        raise
    except ComputeError as error:
        placed = _of_own if family.name == OWN.name else as_read
        raise ModelError([placed(x) for x in error.faults]) from error


def _refuse_depth(fields: Fields, count: int) -> None:
    """Before anything is made for each block: every block has tensors of its own."""
    for asked in (fields, fields.nested("text_config")):
        for key in _DEPTHS:
            depth = asked.raw.get(key)
            if type(depth) is int and depth > count:
                detail = f"{key} = {depth} is more than the file has tensors."
                raise refused((FILE, key), detail, count, depth)
            if type(depth) is int and depth > MOST_BLOCKS:
                detail = f"{key} = {depth} is more blocks than any model has."
                raise refused((FILE, key), detail, f"at most {MOST_BLOCKS}", depth)


def _of_own(fault: Fault) -> Fault:
    """Our own form has our own fields."""
    return replace(fault, place=(FILE, *fault.place))


def as_read(fault: Fault, file: str = FILE) -> Fault:
    """A rule that the config breaks as it is read here, at a file that has other fields."""
    field = ".".join(map(str, fault.place))
    detail = f"{file}, as it is read here: {field}{': ' if field else ''}{fault.detail}"
    return replace(fault, detail=detail, place=(file,))
