"""From a config.json to a resolved config, by its family."""

from collections.abc import Set as AbstractSet

from compute import config_rules
from compute.checkpoints.family import Family
from compute.checkpoints.faults import refused
from compute.checkpoints.fields import Fields
from compute.config import ModelConfig
from compute.errors import ComputeError, Fault, ModelError

_DEPTHS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers")
_FILE = "config.json"


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
        raise ModelError([_in_file(x) for x in error.faults]) from error


def _refuse_depth(fields: Fields, count: int) -> None:
    """Before anything is made for each block: every block has tensors of its own."""
    for asked in (fields, fields.nested("text_config")):
        for key in _DEPTHS:
            depth = asked.raw.get(key)
            if type(depth) is int and depth > count:
                detail = f"{key} = {depth} is more than the file has tensors."
                raise refused((_FILE, key), detail, count, depth)


def _in_file(fault: Fault) -> Fault:
    return Fault(
        code=fault.code,
        detail=fault.detail,
        place=(_FILE, *fault.place),
        expected=fault.expected,
        got=fault.got,
    )
